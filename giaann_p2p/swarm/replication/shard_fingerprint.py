"""The fingerprint of a replica's content, as of now or of an earlier, smaller set of chunks.

A peer that must prove that it holds a shard often has more chunks than the peer that asks. But
fingerprints are additive: the later chunks are subtracted one by one, if their deltas are kept; or,
if only few chunks are asked for, these are added up instead. Both are slow, so the work for one
answer is bounded.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from giaann_p2p.model.fingerprint import Fingerprint, fingerprint, none
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.wire.identity import Peer

PROOF_BYTES = 32
_MOST_WEIGHED = 1 << 20
"""Maximum number of connections fingerprinted in one go, which takes about a second."""
_MOST_DELTAS = 64
"""Maximum number of deltas that are subtracted, or added up, for one shard."""
_A_DELTA = 1 << 13
"""Cost of one delta, in connections: a record of many shards may have to be unpacked."""


class Weight(NamedTuple):
    """The fingerprint of a replica, and the set of chunks that it covers."""

    chunks: Applied
    print: Fingerprint


Weights = Mapping[int, Weight]
"""Fingerprints by shard."""


def proof_of(found: Fingerprint, peer: Peer) -> bytes:
    """Return a peer's proof of a fingerprint, bound to its name so that no other can relay it."""
    data = found.astype("<u8").tobytes() + peer
    return hashlib.blake2b(data, digest_size=PROOF_BYTES, person=b"giaann proof").digest()


def weighed(store: Store, shards: Iterable[int], salt: bytes) -> dict[int, Weight]:
    """Fingerprint the first of some shards as they are now, as many as do not take too long."""
    found, size = dict[int, Weight](), 0
    for shard in shards:
        if size > _MOST_WEIGHED:
            break
        held = store.content(shard)
        if len(held.shards):
            found[shard] = Weight(held.applied[0], fingerprint(held.delta, salt))
            size += held.delta.connections
    return found


def proofs(
    store: Store, shards: Iterable[int], chunks: Applied, salt: bytes, peer: Peer
) -> list[bytes]:
    """Return proofs that the first of some shards hold these chunks; an empty one where impossible.

    The number of proofs is bounded by the time that they take, but at least one.
    """
    found, size = list[bytes](), 0
    for shard in shards:
        if size > _MOST_WEIGHED:
            break
        weight, took = _as_of(store, shard, chunks, salt)
        found.append(b"" if weight is None else proof_of(weight, peer))
        size += took
    return found


def _as_of(
    store: Store, shard: int, chunks: Applied, salt: bytes
) -> tuple[Fingerprint | None, int]:
    """Return a shard's fingerprint for some of its chunks only, and the cost in connections.

    The fingerprint is None if the shard lacks one of these chunks, or a delta that the sum needs.
    """
    now = store.sets([shard]).get(shard)
    if now is None or not chunks <= now:
        return None, 0
    if len(chunks) <= len(now - chunks):
        found = _of_deltas(store, shard, chunks, salt)
        if found is not None:
            return found, len(chunks) * _A_DELTA
    held = store.content(shard)
    if not len(held.shards):
        return None, 0
    beyond = held.applied[0] - chunks
    left = _of_deltas(store, shard, beyond, salt)
    took = held.delta.connections + min(len(beyond), _MOST_DELTAS) * _A_DELTA
    return None if left is None else fingerprint(held.delta, salt) - left, took


def _of_deltas(store: Store, shard: int, chunks: Applied, salt: bytes) -> Fingerprint | None:
    """Add up the fingerprints of some chunks' deltas; None if they are too many, or not kept.

    The result is also None if the set has a withdrawal without the withdrawn chunk: the sum would
    include a delta that no peer has any more.
    """
    found = none()
    if not chunks.withdrawn <= chunks:
        return None
    chunks = chunks.left
    if not chunks:
        return found
    if len(chunks) > _MOST_DELTAS or not chunks <= store.retained_for(shard):
        return None
    for job in chunks:
        for chunk in chunks.of(job):
            updates = store.recall(job, chunk, [shard])
            if not updates:  # the delta was released meanwhile
                return None
            for update in updates:
                found += fingerprint(update.delta, salt)
    return found
