"""Builds a request for the deltas of missing chunks, and parses the answer."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

import numpy as np

from giaann_p2p.errors import MessageError
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.codec.parcel import sizes_of
from giaann_p2p.store.update import Packed
from giaann_p2p.swarm.replication.delta_checks import DeltaChecks
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import MOST_BYTES, Fetch, Fetched
from giaann_p2p.swarm.wire.shardset import packed, unpacked

MOST_UNPACKED = MOST_BYTES
"""Maximum sum of neurons, connections and bytes of text in the deltas accepted from one answer. A
single delta may be larger."""


class Lack(NamedTuple):
    """A set of chunks that some of this peer's shards lack."""

    chunks: Applied
    shards: list[int]
    remembered: bool = False
    """Whether to request also the deltas that the other peer has released but still remembers."""
    all_that_is_lacking: bool = True
    """Whether the shards lack nothing else that the other peer has."""


class Holding(Protocol):
    """Which shards this peer holds; `Replicas` implements it."""

    @property
    def shards(self) -> int:
        """The number of shards in the swarm."""
        ...

    def holds(self, shard: int) -> bool:
        """Return whether this peer has a replica of a shard, in any state."""
        ...


def request(lack: Lack, replicas: Holding, most: int) -> Fetch:
    """Return the request for some missing chunks, with at most `most` bytes in the answer."""
    asked = packed(np.array(lack.shards, np.uint16), replicas.shards)
    return Fetch(asked, lack.chunks.to_bytes(), most, lack.remembered)


def shards_of(updates: Iterable[Packed]) -> set[int]:
    """Return the shards that at least one of the updates changes."""
    return {shard for update in updates for shard in update.shards.tolist()}


def deltas_of(
    answer: Message | None, lack: Lack, replicas: Holding, delta_checks: DeltaChecks
) -> tuple[list[Packed], Applied]:
    """Return an answer's deltas for shards held here, and the chunks whose deltas are gone there.

    Raises MessageError or DamagedError if there is no answer, or if it has a delta that was not
    requested. The content of a delta is checked later, when it is unpacked. Deltas beyond
    MOST_UNPACKED are left out and can be requested again. Withdrawals that the founder's list lacks
    are left out, too.
    """
    if not isinstance(answer, Fetched):
        raise MessageError("no valid answer to a request for deltas")
    updates: list[Packed] = []
    size = 0
    for piece in answer.updates:
        shards = unpacked(piece.shards, replicas.shards)
        if (piece.job, piece.chunk) not in lack.chunks or not set(shards) <= set(lack.shards):
            raise MessageError("an answer has a delta that was not requested")
        told = sizes_of(piece.parcel)
        size += told.neurons + told.connections + told.text
        if updates and size > MOST_UNPACKED:
            break
        here = shards[[replicas.holds(shard) for shard in shards.tolist()]]
        if len(here) and delta_checks.heeds(piece):
            updates.append(delta_checks.packed(piece, shards, here))
    return updates, Applied.received(answer.gone)
