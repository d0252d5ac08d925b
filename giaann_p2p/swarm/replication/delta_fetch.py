"""Asking a peer for the deltas of chunks, and reading its answer."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

import numpy as np

from giaann_p2p.errors import MessageError
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.codec.parcel import sizes_of
from giaann_p2p.store.update import Packed
from giaann_p2p.swarm.messages import MOST_BYTES, Fetch, Fetched, Message
from giaann_p2p.swarm.shardset import packed, unpacked
from giaann_p2p.swarm.terms import Terms

MOST_UNPACKED = MOST_BYTES
"""Neurons, connections and bytes of text in an answer; a delta that comes alone may be larger."""


class Lack(NamedTuple):
    """Chunks that some shards lack here."""

    chunks: Applied
    shards: list[int]
    remembered: bool = False
    """Whether nothing but what the other side merely remembers can help."""


class Holding(Protocol):
    """What is held here; see `Replicas`."""

    @property
    def shards(self) -> int:
        """How many shards there are in the swarm."""
        ...

    def holds(self, shard: int) -> bool:
        """Tell whether anything of a shard is here."""
        ...


def request(lack: Lack, replicas: Holding, most: int) -> Fetch:
    """Return the question for what is lacking, so many bytes of it at once."""
    asked = packed(np.array(lack.shards, np.uint16), replicas.shards)
    return Fetch(asked, lack.chunks.to_bytes(), most, lack.remembered)


def shards_of(updates: Iterable[Packed]) -> set[int]:
    """Return the shards that updates are for."""
    return {shard for update in updates for shard in update.shards.tolist()}


def deltas_of(
    answer: Message | None, lack: Lack, replicas: Holding, terms: Terms
) -> tuple[list[Packed], Applied]:
    """Return the deltas that came, for shards that are held here, and what is kept no longer.

    MessageError or DamagedError for no answer, and for one that holds what was not asked for; what
    a delta holds is seen when it is unpacked. What is too much for one answer is left out: it can
    be asked for again; and so is what is nothing for this peer (see `Terms.heeds`).
    """
    if not isinstance(answer, Fetched):
        raise MessageError("no answer to a request for deltas")
    updates: list[Packed] = []
    size = 0
    for piece in answer.updates:
        shards = unpacked(piece.shards, replicas.shards)
        if (piece.job, piece.chunk) not in lack.chunks or not set(shards) <= set(lack.shards):
            raise MessageError("a delta that was not asked for")
        told = sizes_of(piece.parcel)
        size += told.neurons + told.connections + told.text
        if updates and size > MOST_UNPACKED:
            break
        here = shards[[replicas.holds(shard) for shard in shards.tolist()]]
        if len(here) and terms.heeds(piece):
            updates.append(terms.packed(piece, shards, here))
    return updates, Applied.received(answer.gone)
