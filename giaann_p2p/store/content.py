"""The content of some shards, with the set of chunks that each of them is the sum of."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from giaann_p2p.model.delta import EMPTY, Delta
from giaann_p2p.model.digest import digest
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.layout import Layout, Shards


@dataclass(frozen=True, eq=False)
class Content:
    """The content of some shards, with the set of chunks that each of them is the sum of.

    Invariant: `applied[i]` is the set of `shards[i]`.
    """

    shards: Shards
    applied: list[Applied]
    delta: Delta
    parcel: bytes | memoryview = b""
    """The delta's encoding, if it was received as bytes; else it is encoded when needed."""

    @cached_property
    def digest(self) -> int:
        """A digest of the rows: equal exactly for equal rows."""
        return digest(self.delta)


def by_shard(held: Content, layout: Layout) -> Iterator[Content]:
    """Split checked content by shard; one shard, which is what peers send, needs no split."""
    if len(held.shards) == 1:
        yield held
        return
    shard = layout.shards_of(held.delta.concept, held.delta.feature)
    parts = held.delta.cut(shard.astype(np.int64))
    for number, applied in zip(held.shards.tolist(), held.applied, strict=True):
        yield Content(np.array([number], np.uint16), [applied], parts.get(number, EMPTY))
