"""Texts that are not UTF-8: which are refused, and which only have damaged places."""

import pytest

from giaann_p2p.errors import TextError
from giaann_p2p.model.encoding import Guess, refuse_marked

FRENCH = "Les \u00e9l\u00e8ves ont d\u00e9j\u00e0 \u00e9t\u00e9 \u00e0 l\u2019\u00e9cole; "
FRENCH += "\u00ab no\u00ebl \u00bb.\n"


def guess(data: bytes, size: int) -> None:
    found = Guess()
    for at in range(0, len(data), size):
        found.read(data[at : at + size])
    found.refuse("text.txt")


@pytest.mark.parametrize("size", [1 << 16, 100, 7])
@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_latin_1_is_refused_with_its_line_and_the_remedy(encoding: str, size: int) -> None:
    french = FRENCH.replace("\u2019", "'") if encoding == "latin-1" else FRENCH
    data = b"Bees make honey.\n" * 50 + french.encode(encoding) * 50
    why = r"^text.txt:51: the text looks like Latin-1 .* iconv -f WINDOWS-1252 -t UTF-8$"
    with pytest.raises(TextError, match=why):
        guess(data, size)


@pytest.mark.parametrize("size", [1 << 16, 1, 3])
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"Bees make honey.\n" * 30,
        FRENCH.encode(),
        FRENCH.encode() + b"damaged caf\xe9 here",
        b"Bees \xff make \xfe honey.",  # damaged places, and no letters
        b"\x00caf\xe9\x00",
        "\u65e5\u672c\u8a9e".encode(),
    ],
)
def test_all_else_may_be_learned(data: bytes, size: int) -> None:
    guess(data, size)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_mark_names_the_encoding(encoding: str) -> None:
    with pytest.raises(TextError, match=f"t:1: the text is {encoding.upper()}, not UTF-8"):
        refuse_marked("Bees".encode(encoding), "t")
    refuse_marked(b"Bees", "t")
