"""Renders words as natural text: the inverse of tokenising, as far as it can be inferred."""

import re

from giaann_p2p.model.lexicon import Delimiter, delimiter

_CLOSING = frozenset(",.;:?!)]}%…’”")
_OPENING = frozenset("([{$£€#“‘")
_JOINING = frozenset("-/")
_DASHES = frozenset("–—")  # words of their own; a dash that joined nouns became a hyphen
_SENTENCE_ENDS = frozenset(".?!")

_CLITICS = frozenset(a + c for a in "'’" for c in ("s", "re", "ve", "ll", "d", "m")) | {
    "n't",
    "n’t",
}
_AUXILIARIES = frozenset(
    ["are", "ca", "could", "did", "do", "does", "had", "has", "have", "is", "was", "wo", "would"]
)
_ENDINGS = {
    "not": frozenset(["can"]),
    "na": frozenset(["gon", "wan"]),
    "ta": frozenset(["got"]),
    "all": frozenset(["y'", "y’"]),
    "on": frozenset(["c'm", "c’m"]),
    "nt": _AUXILIARIES,
}
"""Endings that the tokeniser splits off, with the words that they belong to: "cannot", "gonna"."""

_BEFORE_QUOTATION = frozenset(["a", "an", "the", "this", "that", "is", "was", "as", "says"])
_LAST_WORD = re.compile(r"(?:[\w'’]+|\S)\Z")
_OPEN_SINGLE = re.compile(r"(?<!\S)'(?:[^']|(?<=\w)'(?=\w))*\Z")


class Renderer:
    """Renders words one by one; returns for each the string to append to the text so far."""

    def __init__(self, text: str = "") -> None:
        """Prepare to append to a text."""
        found = _LAST_WORD.search(text[-64:])
        self._last = found[0].lower() if found else ""
        self._bracket = text.count("(") > text.count(")")
        self._quoted: set[str] = set()
        """The straight quotation marks that are open at this point."""
        if text.count('"') % 2:
            self._quoted.add('"')
        if _OPEN_SINGLE.search(text):
            self._quoted.add("'")
        end = text[-1:]
        self._glue = (
            not end.strip()
            or end in _OPENING | _JOINING | self._quoted
            or (end in _DASHES and not text[-2:-1].isspace())
        )

    def append(self, word: str) -> str:
        """Return the string that appends a word."""
        parts = word.split("_")
        # A word that begins or ends with an underscore was not merged: its text was written so.
        return "".join(map(self._append, parts if all(parts) else [word]))

    def complete(self, rest: str) -> str:
        """Return the string that completes the text's last word: `_civil_war` for "the Spanish"."""
        joint, *parts = rest.split("_")
        self._glue = self._glue and not joint
        return joint + "".join(map(self._append, parts))

    def _append(self, part: str) -> str:
        if part.isspace():
            return ""
        left, right = self._joins(part)
        text = part if left or self._glue else " " + part
        self._glue, self._last = right, part
        return text

    def _joins(self, word: str) -> tuple[bool, bool]:
        """Return whether a word is joined to the one before, and whether to the one after it."""
        if word in ('"', "'"):
            return self._quotation(word)
        if self._bracket and ")" in word:  # also one that the tokeniser takes for a smiley
            self._bracket = False
            return True, False
        self._bracket |= word == "("
        joining = word in _JOINING
        left = word in _CLOSING or word in _CLITICS or self._last in _ENDINGS.get(word, ())
        return left or joining, word in _OPENING or joining

    def _quotation(self, mark: str) -> tuple[bool, bool]:
        if mark in self._quoted:
            self._quoted.remove(mark)
            return True, False
        # Sentences are learned one by one: a mark after the end of one still belongs to it.
        if self._last in _SENTENCE_ENDS or (mark == "'" and _may_own(self._last)):
            return True, False
        self._quoted.add(mark)
        return False, True


def _may_own(word: str) -> bool:
    """Return whether an apostrophe after a word marks a genitive, and does not open a quotation.

    A plural may appear as its lemma, so this is true of any word that may be a noun.
    """
    if not word[-1:].isalnum() or word in _BEFORE_QUOTATION:
        return False
    return word.endswith("s") or delimiter(word) is Delimiter.NONE
