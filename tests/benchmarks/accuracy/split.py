"""Splits a text into documents to learn and documents to test.

Lines next to each other resemble each other, so whole documents are held out: each twentieth, those
numbered 10 modulo 20. A form feed separates documents; a text without one is cut by lines.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

FORM_FEED = "\f"
EACH, FIRST = 20, 10


class Split(NamedTuple):
    """A text, split."""

    name: str
    train: list[str]
    test: list[str]


def split(path: Path, lines: int, test_chars: int) -> Split:
    """Return a text's documents; those to test are cut to so many characters together, if not 0."""
    documents = documents_of(path.read_text("utf-8"), lines)
    train = [document for at, document in enumerate(documents) if at % EACH != FIRST]
    test = [document for at, document in enumerate(documents) if at % EACH == FIRST]
    if not test:
        raise SystemExit(f"{path}: {len(documents)} documents are too few; --lines makes more")
    return Split(path.name, train, shortened(test, test_chars) if test_chars else test)


def documents_of(text: str, lines: int) -> list[str]:
    """Return a text's documents: between form feeds, or of so many lines each."""
    if FORM_FEED in text:
        return [document for document in text.split(FORM_FEED) if document.strip()]
    cut = text.splitlines(keepends=True)
    return ["".join(cut[at : at + lines]) for at in range(0, len(cut), lines)]


def shortened(documents: Sequence[str], together: int) -> list[str]:
    """Return the beginnings of documents, all of one length, cut where a line ends."""
    most = together // len(documents)
    return [
        document if len(document) <= most else document[: document.find("\n", most) + 1 or None]
        for document in documents
    ]
