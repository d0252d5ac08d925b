"""How much another peer may send, once it is unpacked: some bytes may stand for gigabytes.

A store's own limits are those of what it may come to hold. What comes in one message is far less: a
chunk's delta is no more than its sequences can add, a part of a shard no more than goes into a
message, and a shard no more than fits into the memory that is given to all of them.
"""

from dataclasses import replace

from giaann_p2p.model.spec import CHUNK, ModelSpec
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.swarm.messages import MOST_BYTES

MOST_CONNECTIONS = MOST_BYTES
"""In a part of a shard: each takes a byte or more in a message, unless a text hardly varies."""
_MOST_TEXT = 8 * MOST_BYTES
_CONNECTION = 9
"""Bytes of memory that a connection takes at least."""
_ALONE = 1 << 18
"""Neurons of a part that have no connections; they are few, for hardly any word is only a last one.
Each of the others is one end of a connection, or both."""


def of_chunk(spec: ModelSpec) -> Limits:
    """Return what a parcel of one chunk may hold.

    Each token is a neuron, and each two tokens of a sentence add two connections at most, one in a
    column segment and one in a feature segment.
    """
    tokens = CHUNK * spec.max_tokens
    return Limits(spec.branches, spec.segments, tokens, tokens * (spec.max_tokens - 1))


def of_part(limits: Limits, promised: int) -> Limits:
    """Return what a parcel with a part of a shard may hold that has so many connections left."""
    connections = min(promised, MOST_CONNECTIONS)
    neurons = 2 * connections + _ALONE
    return replace(limits, neurons=neurons, connections=connections, text=_MOST_TEXT)


def of_shard(capacity: int) -> int:
    """Return how many connections a shard may have for a peer with so many bytes of memory."""
    return capacity // _CONNECTION
