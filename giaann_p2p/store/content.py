"""The content of some shards: their rows, and for each shard the chunks that add up to its rows."""

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
    """The rows of some shards, and for each shard the set of chunks that add up to its rows.

    Invariant: `applied[i]` is the set of chunks of `shards[i]`.
    """

    shards: Shards
    applied: list[Applied]
    delta: Delta
    parcel: bytes | memoryview = b""
    """The encoded delta, if it was received as bytes; otherwise empty, and encoded when needed."""

    @cached_property
    def digest(self) -> int:
        """A digest of the rows: equal rows have equal digests, and different rows do not."""
        return digest(self.delta)


def by_shard(held: Content, layout: Layout) -> Iterator[Content]:
    """Split content into one part per shard; the content must be checked already.

    Content of a single shard, which is what peers send, is yielded unchanged.
    """
    if len(held.shards) == 1:
        yield held
        return
    shard = layout.shards_of(held.delta.concept, held.delta.feature)
    parts = held.delta.cut(shard.astype(np.int64))
    for number, applied in zip(held.shards.tolist(), held.applied, strict=True):
        yield Content(np.array([number], np.uint16), [applied], parts.get(number, EMPTY))
