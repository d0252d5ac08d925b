"""A store in plain Python: dictionaries and sets, nothing else.

It is the yardstick for the real store, so it shares no code with it. It knows nothing of disks:
what it holds is what the real one has to hold, before and behind any restart or crash.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

Neuron = tuple[int, int]
"""Concept and feature, by number."""


class Link(NamedTuple):
    """What a connection is, as its source sees it."""

    target: Neuron
    branch: int
    segment: int


@dataclass
class Row:
    """How often a neuron occurred, and the strength of each of its connections."""

    count: int = 0
    links: dict[Link, int] = field(default_factory=dict)


Rows = dict[Neuron, Row]


class Chunk(NamedTuple):
    """The name of a chunk."""

    job: bytes
    number: int


class RefusedError(Exception):
    """A shard that is not held, or two sums of which nobody can tell what they have in common."""


def add(rows: Rows, more: Rows) -> None:
    """Add rows to rows."""
    for neuron, row in more.items():
        if neuron not in rows:
            rows[neuron] = Row()
        rows[neuron].count += row.count
        for link, units in row.links.items():
            rows[neuron].links[link] = rows[neuron].links.get(link, 0) + units


@dataclass
class Shard:
    """What one shard holds, and the chunks that it comes from."""

    rows: Rows = field(default_factory=dict)
    chunks: set[Chunk] = field(default_factory=set)

    def copy(self) -> "Shard":
        """Return the same, to go on with on its own."""
        rows = {neuron: Row(row.count, dict(row.links)) for neuron, row in self.rows.items()}
        return Shard(rows, set(self.chunks))


class Store:
    """Shards of rows, and notes; and for each shard the chunks whose delta is retained."""

    def __init__(
        self, shard_of: Callable[[Neuron], int], retain: bool = False, number: int = 1
    ) -> None:
        self.shard_of, self.number = shard_of, number
        self.retain = retain
        self.retained: dict[int, set[Chunk]] = {}
        self.told: dict[Chunk, Rows] = {}
        self.shards: dict[int, Shard] = {}
        self.notes: dict[str, bytes] = {}

    def copy(self) -> "Store":
        """Return the same, to go on with on its own."""
        other = Store(self.shard_of, self.retain, self.number)
        other.retained = {number: set(chunks) for number, chunks in self.retained.items()}
        other.told = dict(self.told)
        other.shards, other.notes = {}, dict(self.notes)
        for number, shard in self.shards.items():
            other.shards[number] = shard.copy()
        return other

    def row(self, neuron: Neuron) -> Row | None:
        """Return a row; None for a neuron that never occurred, or is not held here."""
        shard = self.shards.get(self.shard_of(neuron))
        return shard.rows.get(neuron) if shard else None

    def hold(self, shards: Iterable[int]) -> None:
        """Begin to hold shards."""
        for number in shards:
            if number not in self.shards:
                self.shards[number] = Shard()
                self.retained[number] = set()

    def drop(self, shards: Iterable[int]) -> None:
        """Let shards go."""
        for number in shards:
            if number in self.shards:
                del self.shards[number], self.retained[number]

    def double(self, shard_of: Callable[[Neuron], int], number: int) -> None:
        """Divide each shard s of N into s, s + N and so on, so that there are `number` of them."""
        before, self.number, self.shard_of = self.number, number, shard_of
        old, retained = self.shards, self.retained
        self.shards, self.retained = {}, {}
        for part in range(number):
            if whole := old.get(part % before):
                self.shards[part] = Shard(self.of_shard(part, whole.rows), whole.chunks).copy()
                self.retained[part] = set(retained[part % before])

    def apply(self, chunk: Chunk, shards: Iterable[int], rows: Rows) -> list[int]:
        """Take a chunk in; return the shards to which it was new."""
        shards = list(shards)
        if not set(shards) <= self.shards.keys():
            raise RefusedError
        new = [number for number in shards if chunk not in self.shards[number].chunks]
        for number in new:
            self.shards[number].chunks.add(chunk)
            add(self.shards[number].rows, self.of_shard(number, rows))
            if self.retain:
                self.retained[number].add(chunk)
                self.told[chunk] = rows
        return new

    def release(self, *chunks: Chunk) -> None:
        """Retain some chunks no longer."""
        for retained in self.retained.values():
            retained.difference_update(chunks)

    def of_shard(self, number: int, rows: Rows) -> Rows:
        """Return those of some rows that belong to a shard."""
        return {neuron: row for neuron, row in rows.items() if self.shard_of(neuron) == number}

    def adopt(self, number: int, theirs: Shard) -> None:
        """Take in what a shard holds elsewhere."""
        ours = self.shards.get(number, Shard())
        self.retained.setdefault(number, set())
        beyond = ours.chunks - theirs.chunks
        if ours.chunks <= theirs.chunks:
            self.shards[number] = theirs.copy()
        elif theirs.chunks <= ours.chunks:
            pass
        elif theirs.chunks & ours.chunks:
            if not beyond <= self.retained[number]:
                raise RefusedError
            self.shards[number] = whole = theirs.copy()
            whole.chunks |= beyond
            for chunk in beyond:
                add(whole.rows, self.of_shard(number, self.told[chunk]))
        else:
            add(ours.rows, theirs.rows)
            ours.chunks |= theirs.chunks
