"""What a chunk's text comes to: parsed, learned on a torch device, and cut for those who are to
have it. This is a compute peer's real work; it runs away from the event loop.

All that goes in and comes out is plain bytes and texts, small enough to be sent between processes.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch

from giaann_p2p.model import device as devices
from giaann_p2p.model.delta import Delta
from giaann_p2p.model.learn import learn
from giaann_p2p.model.parse import Parser, Skips
from giaann_p2p.model.sequence import Ints
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.text import Sentence
from giaann_p2p.store.codec.parcel import decode, encode
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.store.seal import leaves_of, to_bytes
from giaann_p2p.swarm.limits import of_chunk
from giaann_p2p.swarm.messages import Skip


class Task(NamedTuple):
    """A chunk to be learned."""

    sentences: list[str]
    owners: list[bytes]
    """What shards its owners have, each set once: as bytes of `Shards`."""


class Made(NamedTuple):
    """What came of it."""

    parcels: dict[bytes, bytes]
    """By the set of shards that each is for."""
    whole: bytes
    """For owners of other shards, who have come since: all of it."""
    leaves: bytes
    """The digests of the shards' parts of it; see `store.seal`."""
    sequences: int
    skips: list[tuple[str, int, int]]


class School:
    """Learns chunks of one swarm, in this process."""

    def __init__(self, spec: ModelSpec, layout: Layout, device: str) -> None:
        self._spec, self._layout = spec, layout
        self._device = devices.resolve(device)
        self._parser = Parser(spec)

    def __repr__(self) -> str:
        return f"<School on {self._device}>"

    def learn(self, task: Task) -> Made:
        """Learn a chunk."""
        # A sentence's line is its number here: whoever has the text knows its line.
        chunk = [Sentence(text, number) for number, text in enumerate(task.sentences)]
        (parsed,) = self._parser.parse([chunk])
        delta = learn(parsed.sequences, self._spec, self._device)
        whole = encode(delta)
        homes = _homes(delta, self._layout)
        shards = np.arange(self._layout.shards, dtype=np.uint16)
        leaves = to_bytes(leaves_of(delta, shards, self._layout))
        everything = shards.tobytes()
        parcels = {
            owned: whole if owned == everything else encode(_part(delta, homes, owned))
            for owned in task.owners
        }
        return Made(parcels, whole, leaves, len(parsed.sequences), _told(parsed.skips))


Teach = Callable[[], School]
"""Makes a school, where it is to work."""


def teach(spec: ModelSpec, layout: Layout, device: str) -> Teach:
    """Return how a swarm's school is made; it can be sent to another process."""
    return partial(School, spec, layout, device)


def one_thread() -> None:
    """Have torch compute in this thread alone: for work this small, more only get in the way."""
    torch.set_num_threads(1)


class Cutting:
    """Cuts what was made: for those that were owners at the time at once, for others by looking."""

    def __init__(self, made: Made, spec: ModelSpec, layout: Layout) -> None:
        self._made, self._spec, self._layout = made, spec, layout

    def __repr__(self) -> str:
        return f"<Cutting of {len(self._made.whole):,} bytes>"

    def __call__(self, shards: Shards) -> bytes:
        """Return the parcel of the rows for some shards."""
        key = shards.tobytes()
        if key not in self._made.parcels:
            delta = decode(self._made.whole, of_chunk(self._spec))
            self._made.parcels[key] = encode(_part(delta, _homes(delta, self._layout), key))
        return self._made.parcels[key]


def skips_of(made: Made) -> Sequence[Skip]:
    """Return what was skipped, as it is told."""
    return [Skip(reason, count, first) for reason, count, first in made.skips]


def _homes(delta: Delta, layout: Layout) -> Ints:
    return layout.shards_of(delta.concept, delta.feature).astype(np.int64)


def _part(delta: Delta, homes: Ints, owned: bytes) -> Delta:
    """Return the rows for some shards."""
    return delta.only(np.isin(homes, np.frombuffer(owned, np.uint16)))


def _told(skips: Skips) -> list[tuple[str, int, int]]:
    return [
        (reason.value, count, skips.first_lines[reason]) for reason, count in skips.counts.items()
    ]
