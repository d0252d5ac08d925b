"""Cuts: which columns a layout or an edition cuts by target, and how their parts are named."""

from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

import msgspec

from giaann_p2p.errors import SpecError

MARK = "\x1f"
"""Separates a word and the number of a part in the name of a part. It is white space, so a word
contains it only if the word is nothing but white space."""
MOST_PARTS = 1 << 10
"""The most parts of a column. Reading a row takes one request per part, mostly in parallel."""
MOST_CUT = 1 << 11
"""The most columns that a layout cuts."""
MOST_ALL = 1 << 16
"""The most parts of all columns: each peer has the name of each in memory."""
_DIGITS = len(str(MOST_PARTS))
_LONGEST = 100
"""The most bytes of a cut column's word."""


class Cut(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, order=True):
    """A column that is cut by target."""

    word: str
    """The column's name: a noun; in the profile `subwords`, a first token or a reserved concept."""
    parts: int
    """The number of parts, a power of two."""


def checked(cuts: Sequence[Cut]) -> tuple[Cut, ...]:
    """Return cuts in the order of their words; SpecError if they are invalid."""
    ordered = tuple(sorted(cuts))
    if len(ordered) > MOST_CUT:
        raise SpecError(f"at most {MOST_CUT:,} columns can be cut, not {len(ordered):,}")
    for cut in ordered:
        if not 2 <= cut.parts <= MOST_PARTS or cut.parts & (cut.parts - 1):
            raise SpecError(
                f"the parts of the column {cut.word!r} must be a power of two from 2 to"
                f" {MOST_PARTS:,}; they are {cut.parts:,}"
            )
        if not can_be_cut(cut.word):
            raise SpecError(f"{cut.word[:_LONGEST]!r} is no word, so it has no column to be cut")
    if (parts := sum(cut.parts for cut in ordered)) > MOST_ALL:
        raise SpecError(f"columns are cut into at most {MOST_ALL:,} parts in all, not {parts:,}")
    for one, other in pairwise(ordered):
        if one.word == other.word:
            raise SpecError(f"the column {one.word!r} is cut twice")
    return ordered


def can_be_cut(word: str) -> bool:
    """Return whether a word may be named in a list of cuts."""
    return word.isprintable() and 0 < len(word.encode()) <= _LONGEST  # MARK is not printable


def together(cuts: Iterable[Sequence[Cut]]) -> tuple[Cut, ...]:
    """Merge several lists of cuts; each column gets the largest of its numbers of parts."""
    most = dict[str, int]()
    for cut in chain.from_iterable(cuts):
        most[cut.word] = max(cut.parts, most.get(cut.word, 0))
    return tuple(Cut(word, parts) for word, parts in sorted(most.items()))


class Part(NamedTuple):
    """A part of a cut column."""

    word: str
    number: int


def part_of(name: str) -> Part | None:
    """Return the part of a cut column that has this name; None if no part has it.

    Names come from other peers, so only a name that `names_of` could return is that of a part.
    """
    word, mark, number = name.partition(MARK)
    if not (word and mark and number.isascii() and number.isdecimal()) or number[0] == "0":
        return None
    return Part(word, int(number)) if len(number) <= _DIGITS and int(number) < MOST_PARTS else None


def names_of(cut: Cut) -> list[str]:
    """Return the names of a column's parts; part 0 is the column itself."""
    return [cut.word, *(f"{cut.word}{MARK}{number}" for number in range(1, cut.parts))]
