"""Learns a chunk: tags its text, learns it on a torch device, and cuts the delta for shard owners.

This is most of a compute peer's work, so it runs off the event loop. Its input and output are plain
bytes and texts, because they are sent between processes.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch

from giaann_p2p.model import device as devices
from giaann_p2p.model.delta import Delta
from giaann_p2p.model.parse import Skips
from giaann_p2p.model.profiles import profile_of
from giaann_p2p.model.sequence import Ints
from giaann_p2p.model.spec import MOST_CHUNK, ModelSpec
from giaann_p2p.model.text import Sentence
from giaann_p2p.store.codec.parcel import decode, encode
from giaann_p2p.store.cuts import MOST_PARTS
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.store.seal import leaves_of, to_bytes
from giaann_p2p.swarm.wire.limits import of_chunk
from giaann_p2p.swarm.wire.training_messages import Skip


class Task(NamedTuple):
    """A chunk to be learned."""

    sentences: list[str]
    cuts: list[bytes]
    """The sets of shards to cut its delta for, each as bytes of `Shards`."""
    layout: Layout
    """The layout in which the delta is sealed; the shards in `cuts` are of this layout."""


class Made(NamedTuple):
    """The result of learning a chunk."""

    parcels: dict[bytes, bytes]
    """Encoded parts of the delta, by the set of shards that each is for."""
    whole: bytes
    """The whole delta, encoded; parts for single holders are cut from it."""
    leaves: bytes
    """Digests of each shard's part of the delta: the leaves of its seal (see `store.seal`)."""
    sequences: int
    """Number of sentences with something to learn."""
    skips: list[tuple[str, int, int]]
    """Skipped sentences by reason: the reason, their number, and the first sentence's number."""


class Learner:
    """Learns chunks of one swarm in this process."""

    def __init__(self, spec: ModelSpec, device: str) -> None:
        self._profile = profile_of(spec, devices.resolve(device))

    def __repr__(self) -> str:
        return f"<Learner: {self._profile!r}>"

    def learn(self, task: Task) -> Made:
        """Learn a chunk, and return its delta, whole and cut for each set of shards."""
        # A sentence's number stands in for its line number, which only the client knows.
        chunk = [Sentence(text, number) for number, text in enumerate(task.sentences)]
        learned = self._profile.learn(chunk)
        delta = task.layout.columns.cut(learned.delta)
        whole = encode(delta)
        homes = _homes(delta, task.layout)
        shards = np.arange(task.layout.shards, dtype=np.uint16)
        leaves = to_bytes(leaves_of(delta, shards, task.layout))
        everything = shards.tobytes()
        parcels = {
            owned: whole if owned == everything else encode(_part(delta, homes, owned))
            for owned in task.cuts
        }
        return Made(parcels, whole, leaves, learned.sequences, _told(learned.skips))


Teach = Callable[[], Learner]
"""A function that makes a learner, called in the process in which the learner will work."""


def teach(spec: ModelSpec, device: str) -> Teach:
    """Return a factory of learners for a swarm; it can be pickled for another process."""
    return partial(Learner, spec, device)


def one_thread() -> None:
    """Limit torch to one thread, because more threads only slow down the learning of a chunk."""
    torch.set_num_threads(1)


class Cutting:
    """Cuts the delta of a learned chunk into parcels.

    The whole delta is ready; it goes to a courier, the peer from which other owners fetch their
    parts. Other parcels are cut on demand, and cached.
    """

    def __init__(self, made: Made, spec: ModelSpec, layout: Layout) -> None:
        self._made, self._spec, self._layout = made, spec, layout

    def __repr__(self) -> str:
        return f"<Cutting of {len(self._made.whole):,} bytes>"

    def __call__(self, shards: Shards) -> bytes:
        """Return the parcel with the delta's rows for some shards."""
        key = shards.tobytes()
        if key not in self._made.parcels:
            limits = of_chunk(self._spec, MOST_CHUNK, MOST_PARTS)
            delta = decode(self._made.whole, limits)  # made by this peer, so trusted
            self._made.parcels[key] = encode(_part(delta, _homes(delta, self._layout), key))
        return self._made.parcels[key]


def skips_of(made: Made) -> Sequence[Skip]:
    """Return the skipped sentences of a learned chunk as wire messages."""
    return [Skip(reason, count, first) for reason, count, first in made.skips]


def _homes(delta: Delta, layout: Layout) -> Ints:
    return layout.shards_of(delta.concept, delta.feature).astype(np.int64)


def _part(delta: Delta, homes: Ints, owned: bytes) -> Delta:
    """Return the part of a delta that falls into a set of shards."""
    return delta.only(np.isin(homes, np.frombuffer(owned, np.uint16)))


def _told(skips: Skips) -> list[tuple[str, int, int]]:
    return [
        (reason.value, count, skips.first_lines[reason]) for reason, count in skips.counts.items()
    ]
