"""Detects a text that is not UTF-8, by its byte order mark or by its letters.

Such a text is refused, with the command that converts it. If it were learned as it is, every
sentence with letters beyond ASCII would be skipped; once converted, it would be another text.
"""

import codecs
import re

from giaann_p2p.errors import TextError

_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
LONGEST_MARK = max(map(len, _MARKS))
_HIGH = re.compile(rb"[\x80-\xff]")
_LATIN_LETTER = re.compile(rb"(?<=[A-Za-z])[\xc0-\xff\x92]|[\xc0-\xff](?=[A-Za-z])")
"""In Windows-1252: an accented letter beside a plain letter, or an apostrophe after one."""


def refuse_marked(start: bytes, name: str) -> None:
    """Raise TextError for a text that begins with the byte order mark of another encoding."""
    for mark, encoding in _MARKS.items():
        if start.startswith(mark):
            raise TextError(f"{name}:1: the text is {encoding}, not UTF-8; {_remedy(encoding)}")


class Guess:
    """Guesses whether a text, given block by block, is in Latin-1 or Windows-1252.

    The guess is yes if none of its bytes beyond ASCII decodes as UTF-8, and at least half of them
    are accented letters within a word when read as Latin-1. A single damaged byte is no reason to
    refuse a text.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="ignore")
        self._other = False
        self._high = self._letters = 0
        self._lines, self._first_line = 0, 0

    def read(self, block: bytes) -> None:
        """Read the next block."""
        if self._other:
            return
        if not block.isascii() or self._decoder.getstate()[0]:
            self._look(block)
        self._lines += block.count(b"\n")

    def refuse(self, name: str) -> None:
        """Raise TextError if the blocks read so far seem to be Latin-1."""
        if not self._other and self._letters and 2 * self._letters >= self._high:
            raise TextError(
                f"{name}:{self._first_line}: the text looks like Latin-1 (Windows-1252), not "
                f"UTF-8; {_remedy('WINDOWS-1252')}"
            )

    def _look(self, block: bytes) -> None:
        self._other = b"\0" in block or not self._decoder.decode(block).isascii()
        if (first := _HIGH.search(block)) and not self._first_line:
            self._first_line = 1 + self._lines + block.count(b"\n", 0, first.start())
        self._high += len(_HIGH.findall(block))
        self._letters += len(_LATIN_LETTER.findall(block))


def _remedy(encoding: str) -> str:
    return f"convert it first: iconv -f {encoding} -t UTF-8"
