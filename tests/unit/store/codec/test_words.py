"""The texts of words: each that word's, however often it comes."""

import pytest

from giaann_p2p.errors import DamagedError
from giaann_p2p.model.ids import word_id
from giaann_p2p.store.codec.words import text_of


@pytest.mark.parametrize("word", ["bee", "b" * 200])
def test_a_word_that_was_right_is_wrong_for_another_number(word: str) -> None:
    number = word_id(word)
    for _ in range(2):  # short ones are not checked twice
        assert text_of(number, word.encode()) == word
        with pytest.raises(DamagedError, match="is not"):
            text_of(number + 1, word.encode())
        with pytest.raises(DamagedError, match="not UTF-8"):
            text_of(number, b"\xff")
