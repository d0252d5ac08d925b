"""How much another peer may send, once it is unpacked: some bytes may stand for gigabytes.

A store's own limits are those of what it may come to hold. What comes in one message is far less: a
chunk's delta is no more than its sequences can add, a part of a shard no more than goes into a
message, and a shard no more than fits into the memory that is given to all of them.
"""

from dataclasses import replace

from giaann_p2p.model.spec import CHUNK, ModelSpec
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.store.transfer import ALONE
from giaann_p2p.swarm.messages import MOST_BYTES, MOST_READ

MOST_CONNECTIONS = MOST_BYTES
"""In a part of a shard: each takes a byte or more in a message, unless a text hardly varies."""
_MOST_TEXT = 8 * MOST_BYTES
_CONNECTION = 9
"""Bytes of memory that a connection takes at least."""
_DENSEST = 8
"""Connections, or letters, to a byte of an answer."""
_ANYWAY = 1 << 16
"""Those that an answer may have however short it is, as of a text that hardly varies."""


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
    neurons = 2 * connections + ALONE
    return replace(limits, neurons=neurons, connections=connections, text=_MOST_TEXT)


def of_answer(limits: Limits, size: int) -> Limits:
    """Return what rows may hold that were read, of so many bytes.

    Each neuron is a row that was asked for, or the target of a connection.
    """
    most = _DENSEST * size + _ANYWAY
    connections = min(most, MOST_CONNECTIONS)
    return replace(limits, neurons=connections + MOST_READ, connections=connections, text=most)


def of_shard(capacity: int) -> int:
    """Return how many connections a shard may have for a peer with so many bytes of memory."""
    return capacity // _CONNECTION
