"""What some shards hold, and the chunks that each of them got it from."""

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
    """What some shards hold, and the chunks that each of them got it from."""

    shards: Shards
    applied: list[Applied]
    delta: Delta
    parcel: bytes | memoryview = b""
    """The delta as it came, if it came as bytes; else it is made when it is needed."""

    @cached_property
    def digest(self) -> int:
        """Equal exactly for equal rows."""
        return digest(self.delta)


def by_shard(held: Content, layout: Layout) -> Iterator[Content]:
    """Cut checked content by shard; that of one, which is what others send, needs no cut."""
    if len(held.shards) == 1:
        yield held
        return
    shard = layout.shards_of(held.delta.concept, held.delta.feature)
    parts = held.delta.cut(shard.astype(np.int64))
    for number, applied in zip(held.shards.tolist(), held.applied, strict=True):
        yield Content(np.array([number], np.uint16), [applied], parts.get(number, EMPTY))
