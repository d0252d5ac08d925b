"""Fingerprints of a replica's content, for all of its chunks or for a smaller set of them.

A peer that must prove that it holds a shard often has more chunks than the peer that asks. But
fingerprints are additive, so the extra chunks can be subtracted one by one, if their deltas are
kept. If the requested chunks are fewer than the extra ones, they are added up instead. Both are
slow, so the work for one answer is bounded.
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
"""Number of connections fingerprinted in one go before it is cut short; takes about a second."""
_MOST_DELTAS = 64
"""Maximum number of deltas subtracted or added up for the fingerprint of one shard."""
_A_DELTA = 1 << 13
"""Cost of fingerprinting one delta, in connections: a record with the rows of many shards may have
to be unpacked for it."""


class ShardFingerprint(NamedTuple):
    """The fingerprint of a replica, and the set of chunks that the fingerprint covers."""

    chunks: Applied
    print: Fingerprint


ShardFingerprints = Mapping[int, ShardFingerprint]
"""Fingerprints by shard."""


def proof_of(found: Fingerprint, peer: Peer) -> bytes:
    """Return a peer's proof that it knows a fingerprint.

    The proof depends on the peer's name, so no other peer can pass it off as its own.
    """
    data = found.astype("<u8").tobytes() + peer
    return hashlib.blake2b(data, digest_size=PROOF_BYTES, person=b"giaann proof").digest()


def weighed(store: Store, shards: Iterable[int], salt: bytes) -> dict[int, ShardFingerprint]:
    """Fingerprint some shards as they are now: in order, as many as do not take too long."""
    found, size = dict[int, ShardFingerprint](), 0
    for shard in shards:
        if size > _MOST_WEIGHED:
            break
        held = store.content(shard)
        if len(held.shards):
            found[shard] = ShardFingerprint(held.applied[0], fingerprint(held.delta, salt))
            size += held.delta.connections
    return found


def proofs(
    store: Store, shards: Iterable[int], chunks: Applied, salt: bytes, peer: Peer
) -> list[bytes]:
    """Return proofs that a peer holds these chunks of the first of some shards, in order.

    A proof is empty if the peer cannot give it. There is at least one proof, and only as many as do
    not take too long.
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
    """Return a shard's fingerprint for some of its chunks, and the work done in connections.

    The fingerprint is None if the shard lacks one of these chunks, or if a delta that is needed for
    the sum is no longer kept.
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
    """Add up the fingerprints of some chunks' deltas; None if they are too many or not all kept.

    The result is also None if the set has a withdrawal but not the withdrawn chunk, because the sum
    would need a delta that no peer has any more.
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
