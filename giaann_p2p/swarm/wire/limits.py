"""Limits on the unpacked size of received data, because a few packed bytes may stand for gigabytes.

A store's own limits bound everything that it may ever hold. One message may carry far less: a
chunk's delta is bounded by what its sequences can add, a part of a shard by the size of a message,
and a shard by the memory that the peer gives to all shards.
"""

from dataclasses import replace

from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.traits import traits_of
from giaann_p2p.store.codec.parcel import Limits, memory_of
from giaann_p2p.store.seal import Seal, leaves_in
from giaann_p2p.store.transfer import ALONE
from giaann_p2p.swarm.wire.messages import MOST_BYTES
from giaann_p2p.swarm.wire.row_messages import MOST_READ

MOST_CONNECTIONS = MOST_BYTES
"""Maximum number of connections in one part of a shard. Each takes a byte or more in a message,
except in very repetitive text."""
MOST_CARRIED = 128 << 20
"""Maximum memory in bytes for the carried deltas of all senders with standing together, and again
for those of all others. The rows of almost any message fit."""
_LEAF = 400
"""Memory in bytes that a shard with rows takes in a seal's hash tree."""
_MOST_TEXT = 8 * MOST_BYTES
_CONNECTION = 9
"""Minimum memory that a connection takes, in bytes."""
_DENSEST = 8
"""Maximum number of connections, and of letters, per byte of an answer to a read."""
_ANYWAY = 1 << 16
"""Number of connections, and of letters, that an answer may have whatever its size, because very
repetitive text compresses very well."""


def of_chunk(spec: ModelSpec, sentences: int, parts: int = 1) -> Limits:
    """Return the limits for unpacking the delta of a chunk with this number of sentences.

    `parts`: the largest number of parts into which a column is cut. Each part of a neuron's row has
    a neuron of its own, and at least one connection.
    """
    tokens, traits = sentences * spec.max_tokens, traits_of(spec.profile)
    neurons, connections = traits.most_neurons(tokens), tokens * traits.most_pairs(spec)
    neurons += min((parts - 1) * neurons, connections)
    return Limits(spec.branches, spec.segments, neurons, connections)


def of_push(spec: ModelSpec, sentences: int, parts: int = 1) -> Limits:
    """Return the limits for unpacking a message with rows of such a chunk's delta."""
    limits = of_chunk(spec, sentences, parts)
    connections = min(limits.connections, MOST_CONNECTIONS)
    most = traits_of(spec.profile).most_neurons(sentences * spec.max_tokens)
    return replace(limits, neurons=min(limits.neurons, most + connections), connections=connections)


def carried_size(parcel: bytes, seal: Seal) -> int:
    """Return the approximate bytes of memory that rows and their seal take, packed and unpacked."""
    return len(parcel) + memory_of(parcel) + seal.size + _LEAF * leaves_in(seal)


def of_part(limits: Limits, promised: int) -> Limits:
    """Return the limits for unpacking one part of a shard.

    `promised` is the number of connections of the shard that have not arrived yet.
    """
    connections = min(promised, MOST_CONNECTIONS)
    neurons = 2 * connections + ALONE
    return replace(limits, neurons=neurons, connections=connections, text=_MOST_TEXT)


def of_answer(limits: Limits, size: int) -> Limits:
    """Return the limits for unpacking an answer of `size` bytes to a read.

    Each neuron in the answer either starts a requested row or is the target of a connection.
    """
    most = _DENSEST * size + _ANYWAY
    connections = min(most, MOST_CONNECTIONS)
    return replace(limits, neurons=connections + MOST_READ, connections=connections, text=most)


def of_shard(capacity: int) -> int:
    """Return how many connections a shard may have at a peer with this capacity in bytes."""
    return capacity // _CONNECTION
