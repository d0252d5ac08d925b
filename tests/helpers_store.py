"""The bridge to `tests.plain.store`, and chunks to fill stores with."""

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from giaann_p2p.model.delta import Delta
from giaann_p2p.model.digest import digest
from giaann_p2p.model.ids import PRIME, word_id
from giaann_p2p.model.learn import learn
from giaann_p2p.model.rows import Neuron, Question, Row
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update, cut
from tests.helpers import SMALL, built
from tests.helpers_parcel import delta_of
from tests.helpers_plain import batch_of
from tests.helpers_random import CONCEPTS, FEATURES, sequences
from tests.plain import store as plain

JOB = b"one job of many."
JOBS = [JOB, b"and another one."]
WORDS = {word_id(word): word for word in [*CONCEPTS, *FEATURES] if word}
NEURONS = [
    Neuron(word_id(concept), word_id(feature) if feature else PRIME)
    for concept in CONCEPTS
    for feature in FEATURES
]
NOUNS = ["bee", "wasp", "meadow", "honey", "cat", "dog", "owl", "fox", "elk", "cow"]
VERBS = ["makes", "sees", "of", "the", "and", "is", "eats"]

State = tuple[dict[int, tuple[int, frozenset[plain.Chunk]]], dict[str, bytes]]
"""For each shard its digest and its chunks; and the notes."""


class Lesson(NamedTuple):
    """What one chunk adds, to the store and to the yardstick."""

    chunk: plain.Chunk
    delta: Delta
    rows: plain.Rows

    def update(self, shards: Iterable[int]) -> Update:
        return Update(*self.chunk, np.array(sorted(shards), np.uint16), self.delta)


def lesson(number: int, delta: Delta, job: bytes = JOB) -> Lesson:
    return Lesson(plain.Chunk(job, number), delta, rows_of(delta))


def sentences(count: int, seed: int = 0) -> list[str]:
    """Return sentences about few things."""
    rng = random.Random(seed)
    return [
        " ".join(f"{rng.choice(NOUNS)}/N {rng.choice(VERBS)}/" for _ in range(rng.randint(1, 4)))
        for _ in range(count)
    ]


def lessons(count: int, seed: int = 0) -> list[Lesson]:
    """Return chunks of one sentence each."""
    told = sentences(count, seed)
    return [lesson(i, learn(built(one), SMALL)) for i, one in enumerate(told)]


def grown(delta: Delta, times: int) -> Delta:
    """Return the delta with its strengths multiplied by `times`."""
    arrays = (delta.concept, delta.feature, delta.count, delta.row_starts)
    places = (delta.target, delta.branch, delta.segment)
    return Delta(*arrays, *places, delta.strength * times, delta.names)


drawn_deltas = st.builds(
    lambda corpus, times: grown(learn(batch_of(corpus, SMALL), SMALL), times),
    sequences,
    st.sampled_from([1, 1, 1 << 10, (1 << 13) + 7, 1 << 14]),
)


def rows_of(delta: Delta) -> plain.Rows:
    """Return a delta as the yardstick writes it; a neuron that is only a target has no row."""
    neurons = list(zip(delta.concept.tolist(), delta.feature.tolist(), strict=True))
    rows = {neuron: plain.Row(n) for neuron, n in zip(neurons, delta.count.tolist(), strict=True)}
    fields = (delta.source, delta.target, delta.branch, delta.segment, delta.strength)
    for source, target, branch, segment, units in zip(*(f.tolist() for f in fields), strict=True):
        rows[neurons[source]].links[plain.Link(neurons[target], branch, segment)] = units
    return {neuron: row for neuron, row in rows.items() if row.count or row.links}


def delta_of_rows(rows: plain.Rows, names: Mapping[int, str]) -> Delta:
    """Return the yardstick's rows as a delta."""
    ends = {link.target for row in rows.values() for link in row.links}
    neurons = sorted({*rows, *ends})
    slot = {neuron: i for i, neuron in enumerate(neurons)}
    counts = {neuron: rows[neuron].count if neuron in rows else 0 for neuron in neurons}
    connections = {
        (slot[neuron], slot[link.target], link.branch, link.segment): units
        for neuron, row in rows.items()
        for link, units in row.links.items()
    }
    words = {word for neuron in rows for word in neuron} - {PRIME}
    return delta_of(counts, connections, {word: names[word] for word in words})


def names_of(lessons: Iterable[Lesson]) -> dict[int, str]:
    return {number: text for one in lessons for number, text in one.delta.names.items()}


def plain_store(layout: Layout, retain: bool = False) -> plain.Store:
    return plain.Store(lambda neuron: layout.shard_of(*neuron), retain, layout.shards)


def chunks_of(store: Store, shard: int, jobs: Iterable[bytes] = JOBS) -> frozenset[plain.Chunk]:
    return frozenset(plain.Chunk(job, n) for job in jobs for n in store.applied(shard, job))


def retained_of(store: Store) -> dict[int, set[plain.Chunk]]:
    """Return for each shard the chunks whose delta is retained."""
    found = {n: store.retained_for(n) for n in store.shards.tolist()}
    return {
        n: {plain.Chunk(job, chunk) for job in chunks for chunk in chunks.of(job)}
        for n, chunks in found.items()
    }


def assert_recalled(store: Store, expected: plain.Store) -> None:
    """Assert that each retained delta is exactly the one applied, cut to the requested shards."""
    retained = retained_of(store)
    asked = sorted(retained)
    for job, number in sorted({chunk for chunks in retained.values() for chunk in chunks}):
        chunk = plain.Chunk(job, number)
        wanted = [n for n in asked if chunk in retained[n]]
        assert number in store.retained(job)
        found = store.recall(job, number, asked)
        assert sorted(n for update in found for n in update.shards.tolist()) == wanted
        assert_cut(found, chunk, expected)
        one = asked[number % len(asked)]
        assert_cut(store.recall(job, number, [one]), chunk, expected)
        for some in (asked, [one]):
            recalled = store.recall(job, number, some)
            parcels = store.parcels(job, number, some)
            assert [one.shards.tolist() for one in parcels] == [u.shards.tolist() for u in recalled]
            for update, (told, parcel, *_) in zip(recalled, parcels, strict=True):
                same = Update.received(job, number, told, parcel, store.limits)
                assert_cut([cut(same, told, store.layout)], chunk, expected)
                assert cut(same, told, store.layout).delta.names.keys() == update.delta.names.keys()


def assert_cut(found: list[Update], chunk: plain.Chunk, expected: plain.Store) -> None:
    for update in found:
        assert (update.job, update.chunk) == chunk
        shards = set(update.shards.tolist())
        told = expected.told[chunk]
        rows = {neuron: row for neuron, row in told.items() if expected.shard_of(neuron) in shards}
        assert rows_of(update.delta) == rows
        ends = {link.target for row in rows.values() for link in row.links}
        assert update.delta.neurons == len({*rows, *ends})


def state_of(store: Store) -> State:
    """Return the state of a store in a form that can be compared."""
    shards = store.shards.tolist()
    digests = dict(store.digests())
    return {n: (digests[n], chunks_of(store, n)) for n in shards}, store.notes


def plain_state(store: plain.Store, names: Mapping[int, str] = WORDS) -> State:
    """Return the state of the yardstick's store in the same form."""
    shards = {
        number: (digest(delta_of_rows(shard.rows, names)), frozenset(shard.chunks))
        for number, shard in store.shards.items()
    }
    return shards, dict(store.notes)


def plain_row(row: Row | None) -> plain.Row | None:
    """Return a row as the yardstick writes it."""
    if row is None:
        return None
    concept, feature = row.target_concept.tolist(), row.target_feature.tolist()
    fields = (row.target, row.branch, row.segment, row.strength)
    links = {
        plain.Link((concept[target], feature[target]), branch, segment): units
        for target, branch, segment, units in zip(*(f.tolist() for f in fields), strict=True)
    }
    assert len(links) == len(row.strength), "a connection stands twice in a row"
    return plain.Row(row.count, links)


def assert_rows(
    store: Store, expected: plain.Store, neurons: Sequence[tuple[int, int]] = NEURONS
) -> None:
    """Assert that each row read is the yardstick's, with its name, and an unknown one None."""
    asked = [Neuron(*neuron) for neuron in neurons]
    for neuron, row in zip(asked, store.read(Question(asked)), strict=True):
        assert plain_row(row) == expected.row(neuron), neuron
        if row is not None:
            assert row.neuron == row.name.neuron == neuron


def on_disk(disk: FakeDisk, layout: Layout, spec: ModelSpec = SMALL, held: bool = True) -> Store:
    """Open a store on a disk; it holds all shards, unless `held` is false."""
    store = Store.open(disk, spec, layout)
    if held:
        store.hold(range(layout.shards))
    return store


def copy_of(disk: FakeDisk) -> FakeDisk:
    """Return a disk with the same files, all of them synced."""
    other = FakeDisk(disk.capacity)
    for name in disk.names():
        file = other.create(name)
        file.write(disk.read(name))
        file.sync()
    other.sync()
    return other
