"""Limits on the unpacked size of received data: a few packed bytes may stand for gigabytes.

A store's own limits bound all that it may ever hold. One message may carry far less: a chunk's
delta is bounded by what its sequences can add, a part of a shard by the size of a message, and a
shard by the memory that the peer gives to all shards.
"""

from dataclasses import replace

from giaann_p2p.model.spec import CHUNK, ModelSpec
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.store.transfer import ALONE
from giaann_p2p.swarm.wire.messages import MOST_BYTES, MOST_READ

MOST_CONNECTIONS = MOST_BYTES
"""Maximum number of connections in one part of a shard: each takes a byte or more in a message,
unless a text hardly varies."""
_MOST_TEXT = 8 * MOST_BYTES
_CONNECTION = 9
"""Minimum memory of a connection, in bytes."""
_DENSEST = 8
"""Upper bound of the connections, and of the letters, per byte of an answer."""
_ANYWAY = 1 << 16
"""Connections, or letters, allowed in any answer: a text that hardly varies is packed very
small."""


def of_chunk(spec: ModelSpec) -> Limits:
    """Return the limits of one chunk's parcel.

    Each token is a neuron, and each pair of tokens in a sentence adds at most two connections, one
    in a column segment and one in a feature segment.
    """
    tokens = CHUNK * spec.max_tokens
    return Limits(spec.branches, spec.segments, tokens, tokens * (spec.max_tokens - 1))


def of_part(limits: Limits, promised: int) -> Limits:
    """Return the limits of a parcel with a part of a shard; `promised` connections are left."""
    connections = min(promised, MOST_CONNECTIONS)
    neurons = 2 * connections + ALONE
    return replace(limits, neurons=neurons, connections=connections, text=_MOST_TEXT)


def of_answer(limits: Limits, size: int) -> Limits:
    """Return the limits of an answer of `size` bytes to a read.

    Each neuron in the answer is either a requested row or the target of a connection.
    """
    most = _DENSEST * size + _ANYWAY
    connections = min(most, MOST_CONNECTIONS)
    return replace(limits, neurons=connections + MOST_READ, connections=connections, text=most)


def of_shard(capacity: int) -> int:
    """Return the maximum number of connections of a shard, for a peer's capacity in bytes."""
    return capacity // _CONNECTION
