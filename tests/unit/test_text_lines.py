"""Every sentence knows the line of the text on which it starts."""

import io

from giaann_p2p.model.text import Sentence, document_sentences, text_sentences


def test_sentences_know_their_line() -> None:
    text = "\n\nOne bee.\r\n  Two\rbees. Three\n\nbees.\n\n\nFour."
    assert list(text_sentences(text, 1000)) == [
        Sentence("One bee.", 3),
        Sentence("Two bees.", 4),
        Sentence("Three  bees.", 5),
        Sentence("Four.", 10),
    ]


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    file = io.BytesIO("\ufeffOne bee.".encode())
    assert list(document_sentences(file, "some.txt", 1000)) == [Sentence("One bee.", 1)]


def test_lines_are_right_behind_many_empty_ones() -> None:
    text = "\n" * 100_000 + "One bee." + "\n" * 100_000 + "Two bees."
    assert list(text_sentences(text, 1000)) == [
        Sentence("One bee.", 100_001),
        Sentence("Two bees.", 200_001),
    ]
