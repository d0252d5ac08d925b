"""Words as numbers: fixed for all time, and never the prime feature's."""

import hashlib

import pytest

from giaann_p2p.model.ids import PRIME, word_id


@pytest.mark.parametrize("word", ["bee", "*", "", "über", "honey_bee", "🐝"])
def test_a_word_is_the_first_8_bytes_of_its_hash(word: str) -> None:
    digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
    assert word_id(word) == int.from_bytes(digest, "little")


def test_the_numbers_are_pinned() -> None:
    assert word_id("bee") == 18119106239126326041
    assert PRIME == 0


def test_no_word_is_the_prime_feature(monkeypatch: pytest.MonkeyPatch) -> None:
    class Zero:
        def __init__(self, data: bytes, digest_size: int) -> None:
            self.size = digest_size

        def digest(self) -> bytes:
            return bytes(self.size)

    monkeypatch.setattr(hashlib, "blake2b", Zero)
    assert word_id.__wrapped__("bee") == 1
