"""Shortcuts to the objects that tests need."""

import tarfile
from collections.abc import Iterable, Sequence
from itertools import cycle
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from giaann_p2p.model.columns import Word
from giaann_p2p.model.delta import Delta
from giaann_p2p.model.digest import digest
from giaann_p2p.model.parse import Parser, max_chars
from giaann_p2p.model.rows import Answer, Name, Neuron, Question, Row, Rows, empty_row
from giaann_p2p.model.sequence import Ints, SequenceBuilder, Sequences, joined_names
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.text import text_sentences

DATA = Path(__file__).parent / "data"
GOLDENS = Path(__file__).parent / "goldens"

SMALL = ModelSpec(seed_tokens=4)
"""Two column segments (0, 1), three feature segments (2, 3, 4)."""

ARRAYS = ("concept", "feature", "count", "row_starts", "target", "branch", "segment", "strength")
TOKEN_FIELDS = ("concept", "feature", "column", "branch", "end")
DTYPES = ("u8", "u8", "i8", "i8", "i4", "u1", "u1", "i8")


def sequences_of(text: str, parser: Parser, spec: ModelSpec | None = None) -> Sequences:
    """Parse a text in one piece."""
    sentences = list(text_sentences(text, max_chars(spec or ModelSpec())))
    (parsed,) = parser.parse([sentences])
    return parsed.sequences


def words(text: str) -> list[Word]:
    """Read tokens as "the/ cat/N sat/ cats=cat/N": text, lemma if different, /N for a noun."""
    found = []
    place = 0
    for token in text.split():
        form, _, tag = token.rpartition("/")
        form, _, lemma = form.partition("=")
        found.append(Word(form, lemma or form, tag == "N", place, place + len(form)))
        place += len(form) + 1
    return found


def built(*sentences: str, branches: int = 2) -> Sequences:
    """Build a batch of sentences that are written as `words` reads them."""
    builder = SequenceBuilder(branches)
    for sentence in sentences:
        assert builder.add(words(sentence))
    return builder.build()


def concatenated(batches: Iterable[Sequences]) -> Sequences:
    """Concatenate batches."""
    parts = [SequenceBuilder(1).build(), *batches]
    offsets = np.cumsum([int(part.starts[-1]) for part in parts])
    starts = [part.starts[1:] + at for part, at in zip(parts[1:], offsets, strict=False)]
    return Sequences(
        np.concatenate([parts[0].starts, *starts]),
        *(np.concatenate([getattr(part, name) for part in parts]) for name in TOKEN_FIELDS),
        names=joined_names([part.names for part in parts]),
    )


def row_of(rows: Rows, name: Name) -> Row:
    """Return the row of a name; an empty one if it never occurred."""
    return rows.read(Question([name.neuron]))[0] or empty_row(name.neuron, name)


def reordered(row: Row, order: Ints) -> Row:
    """Return a row with its targets in another order."""
    connections = np.argsort(np.argsort(order)[row.target], kind="stable")
    return replace(
        row,
        target_concept=row.target_concept[order],
        target_feature=row.target_feature[order],
        target=np.argsort(order)[row.target][connections],
        branch=row.branch[connections],
        segment=row.segment[connections],
        strength=row.strength[connections],
        numbers=None,
    )


def in_order(row: Row) -> Row:
    """Return a row with its targets in the order of their numbers."""
    return reordered(row, np.lexsort((row.target_feature, row.target_concept)))


class Shuffled:
    """Rows whose targets are in random order."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def read(self, question: Question) -> Answer:
        """Return the rows asked for."""
        return [row and self._shuffled(row) for row in self._rows.read(question)]

    def _shuffled(self, row: Row) -> Row:
        random = np.random.default_rng(len(row.strength))
        return reordered(row, random.permutation(len(row.target_concept)))


class Alternating:
    """Rows of several holders of the same knowledge, which take turns."""

    def __init__(self, *holders: Rows) -> None:
        self._holders = cycle(holders)

    def read(self, question: Question) -> Answer:
        """Return the rows asked for, each from the next holder."""
        return [
            next(self._holders).read(question._replace(neurons=[neuron]))[0]
            for neuron in question.neurons
        ]


def strength_of(delta: Delta, source: Name, target: Name, branch: int, segment: int) -> int:
    """Return a connection's strength in units, 0 where there is none."""
    ends = [delta.find(*name.neuron) for name in (source, target)]
    found = (
        (delta.source == ends[0])
        & (delta.target == ends[1])
        & (delta.branch == branch)
        & (delta.segment == segment)
    )
    return int(delta.strength[found].sum())


def assert_same(delta: Delta, other: Delta) -> None:
    """Two deltas are the same to the last byte."""
    for name, dtype in zip(ARRAYS, DTYPES, strict=True):
        one, two = getattr(delta, name), getattr(other, name)
        assert one.dtype == two.dtype == np.dtype(dtype), name
        assert one.tobytes() == two.tobytes(), name
    assert delta.names == other.names
    assert digest(delta) == digest(other)


def assert_same_sequences(batch: Sequences, other: Sequences) -> None:
    """Two batches are the same, names included."""
    for name in ("starts", *TOKEN_FIELDS):
        one, two = getattr(batch, name), getattr(other, name)
        assert one.dtype == two.dtype, name
        assert one.tolist() == two.tolist(), name
    assert batch.names == other.names


def neurons(names: Sequence[Name]) -> list[Neuron]:
    """Return the neurons of some names."""
    return [name.neuron for name in names]


def giaannpy_database(where: Path) -> Path:
    """Unpack a database that GIAANNpy wrote into a folder, and return its path."""
    with tarfile.open(DATA / "giaannpy_v2m_quick_database.tar.xz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # since Python 3.11.4
        archive.extractall(where)  # noqa: S202  (a file of this project)
    (found,) = where.iterdir()
    return found


async def no_nouns(_most: int) -> Answer:
    """Return the most frequent nouns of a swarm that has none."""
    return []
