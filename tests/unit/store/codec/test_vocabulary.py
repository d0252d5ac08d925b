"""The words that every peer knows: they never change, and are the tokeniser's."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from giaann_p2p.errors import PipelineError
from giaann_p2p.model.ids import word_id
from giaann_p2p.store.codec import vocabulary as module
from giaann_p2p.store.codec.vocabulary import SIZE, VOCABULARY
from tests.vocabulary import FILE, vocabulary


def test_the_file_never_changes() -> None:
    """Else parcels of other releases, and of stores on disk, would mean other words."""
    found = hashlib.sha256(FILE.read_bytes()).hexdigest()
    assert found == "2281551c428ede81499ca54a50befb84715baac9da5e5f60bc77c055e58d9243"


@pytest.mark.slow
def test_it_has_the_names_of_all_tokens() -> None:
    assert FILE.read_bytes() == vocabulary()


def test_a_damaged_file_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytearray(FILE.read_bytes())
    data[SIZE] ^= 1
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / FILE.name).write_bytes(data)
    monkeypatch.setattr(module.resources, "files", lambda package: tmp_path)
    with pytest.raises(PipelineError, match=r"vocabulary.bin is damaged: install"):
        module._mapped()


def test_each_text_has_its_id() -> None:
    assert np.all(VOCABULARY.ids[1:] > VOCABULARY.ids[:-1])
    for number in (0, SIZE - 1, *range(1, SIZE, 997)):
        assert word_id(VOCABULARY.text(number)) == VOCABULARY.ids[number]


def test_words_are_found_by_their_ids() -> None:
    words = ("bee", " the", "anthill", ",")
    ids = np.array(sorted(map(word_id, words)), np.uint64)
    numbers = VOCABULARY.numbers(ids).tolist()
    texts = [VOCABULARY.text(number) for number in numbers if number >= 0]
    assert sorted(texts) == [" the", ",", "bee"]
    assert VOCABULARY.numbers(np.array([0, 1, (1 << 64) - 1], np.uint64)).tolist() == [-1] * 3
    assert VOCABULARY.numbers(np.empty(0, np.uint64)).tolist() == []
