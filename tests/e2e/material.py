"""What is learned by a swarm in these tests, chunk by chunk, and what all of it comes to.

A twin, a store in memory that takes in what the swarm has committed, tells what the swarm should
hold: the same content and the same sets of chunks, shard by shard.
"""

from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from giaann_p2p.model.delta import EMPTY, Delta, total
from giaann_p2p.model.digest import readable
from giaann_p2p.model.learn import learn
from giaann_p2p.model.parse import chunks, max_chars, parse_chunks
from giaann_p2p.model.rows import DeltaRows, Neuron, Question, Row
from giaann_p2p.model.sequence import Ints
from giaann_p2p.model.spec import CHUNK, ModelSpec
from giaann_p2p.model.text import document_sentences
from giaann_p2p.solo.corpus import opened
from giaann_p2p.solo.jobs import job_id
from giaann_p2p.store.codec.parcel import encode
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.store.seal import Tree, made
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from giaann_p2p.swarm.training.pushed_chunk import Cut
from tests.benchmarks.zipf import Zipf
from tests.helpers import DATA

WIKI = DATA / "wiki.txt"
Place = tuple[int, int, int, int]
"""A connection: its target, its branch and segment; all 0 stands for the neuron's count."""
_COUNT: Place = (0, 0, 0, 0)


class Material:
    """Deltas, each of which is pushed as a chunk once or more often."""

    def __init__(self, deltas: Sequence[Delta], spec: ModelSpec, layout: Layout) -> None:
        self.deltas = deltas
        self.twin = Store.in_memory(spec, layout)
        self.twin.hold(range(layout.shards))
        self._cuts = [_Shared(delta, layout) for delta in deltas]

    def divide(self, layout: Layout) -> None:
        """Cut the deltas for the shards of a layout from now on, which divides those of before."""
        self.twin.double(layout.shards)
        self._cuts = [_Shared(delta, layout) for delta in self.deltas]

    def cut(self, number: int) -> Cut:
        """Return how a delta is cut by shard."""
        return self._cuts[number].parcel

    def tree(self, number: int) -> Tree:
        """Return the digests of a delta."""
        return self._cuts[number].tree

    def committed(self, job: bytes, chunk: int, number: int) -> None:
        """Take in that a delta is learned as a chunk."""
        self.twin.apply([Update(job, chunk, self.twin.shards, self.deltas[number])])

    @property
    def digest(self) -> str:
        """Of all that is committed."""
        return readable(self.twin.digest())

    def neurons(self) -> list[Neuron]:
        """Return those that occur, each once."""
        found: dict[Neuron, None] = {}
        for delta in self.deltas:
            rows = np.flatnonzero(delta.count)
            pairs = zip(delta.concept[rows].tolist(), delta.feature[rows].tolist(), strict=True)
            found.update(dict.fromkeys(Neuron(*pair) for pair in pairs))
        return list(found)


class _Shared:
    """A delta that is cut for the shards of one layout."""

    def __init__(self, delta: Delta, layout: Layout) -> None:
        self._delta, self._layout = delta, layout
        self._parcels: dict[bytes, bytes] = {}

    @cached_property
    def tree(self) -> Tree:
        """The digests of its rows, shard by shard."""
        return made(self._delta, self._layout)

    @cached_property
    def _parts(self) -> dict[int, Delta]:
        return self._delta.cut(_shards_of(self._delta, self._layout))

    def parcel(self, shards: Shards) -> bytes:
        """Return its rows for some shards."""
        key = shards.tobytes()
        if key not in self._parcels:
            parts = self._parts
            chosen = [parts[shard] for shard in shards.tolist() if shard in parts]
            self._parcels[key] = encode(total(chosen or [EMPTY]))
        return self._parcels[key]


class Wiki(Material):
    """The text of the tests: each epoch is a job of its own, as `giaann solo train` has it."""

    def __init__(self, spec: ModelSpec, layout: Layout, path: Path = WIKI) -> None:
        super().__init__(parsed(path, spec), spec, layout)
        self._path = path
        self._rows = [DeltaRows(delta) for delta in self.deltas]

    def job(self, epoch: int) -> bytes:
        """Return the job of an epoch; the first one is 1."""
        with opened(self._path) as corpus:
            return job_id(corpus, epoch, self.twin.spec, CHUNK)

    def times(self, neuron: Neuron, row: Row | None) -> list[int] | None:
        """Return how often each chunk went into a row; None if no such sum explains the row."""
        found = numbers(row)
        parts = [numbers(part) for part in self._parts_of(neuron)]
        places = sorted(set().union(found, *parts))
        sums = np.array([[part.get(place, 0) for part in parts] for place in places])
        wanted = np.array([found.get(place, 0) for place in places])
        guess = np.linalg.lstsq(sums.astype(float), wanted.astype(float), rcond=None)[0]
        whole = np.rint(guess).astype(np.int64)
        return whole.tolist() if np.array_equal(sums @ whole, wanted) and min(whole) >= 0 else None

    def telling(self) -> list[Neuron]:
        """Return the neurons whose rows tell how often each chunk went into them."""
        return [neuron for neuron in self.neurons() if self._tells(neuron)]

    def holds(self, neuron: Neuron) -> list[int]:
        """Return the chunks in which a neuron occurs."""
        return [number for number, part in enumerate(self._parts_of(neuron)) if part is not None]

    def _tells(self, neuron: Neuron) -> bool:
        parts = [numbers(part) for part in self._parts_of(neuron)]
        parts = [part for part in parts if part]
        places = sorted(set().union(*parts))
        sums = np.array([[part.get(place, 0) for part in parts] for place in places])
        return bool(np.linalg.matrix_rank(sums) == len(parts))

    def _parts_of(self, neuron: Neuron) -> list[Row | None]:
        return [rows.read(Question([neuron]))[0] for rows in self._rows]


def made_up(connections: int, spec: ModelSpec, seed: int = 0) -> list[Delta]:
    """Return chunks that nobody wrote, with so many connections or a few more."""
    found: list[Delta] = []
    for sequences in Zipf().chunks(spec, seed):
        found.append(learn(sequences, spec))
        if sum(delta.connections for delta in found) >= connections:
            return found
    return found


@cache
def parsed(path: Path, spec: ModelSpec) -> list[Delta]:
    """Return what each chunk of a text comes to."""
    with opened(path) as corpus:
        parts = parse_chunks(
            chunks(document_sentences(corpus.blocks(), corpus.name, max_chars(spec))), spec
        )
        return [learn(part.sequences, spec) for part in parts]


def _shards_of(delta: Delta, layout: Layout) -> Ints:
    return layout.shards_of(delta.concept, delta.feature).astype(np.int64)


def numbers(row: Row | None) -> dict[Place, int]:
    """Return a row's numbers, each by what it says something of."""
    if row is None or not row.count:
        return {}
    concept, feature = row.target_concept[row.target], row.target_feature[row.target]
    columns = (concept, feature, row.branch, row.segment)
    places = zip(*(column.tolist() for column in columns), strict=True)
    return {_COUNT: row.count} | dict(zip(places, row.strength.tolist(), strict=True))
