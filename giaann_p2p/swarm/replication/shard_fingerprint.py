"""Fingerprints of a replica's content, for all of its chunks or for a smaller set of them.

A peer that must prove that it holds a shard often has more chunks than the peer that asks. But
fingerprints are additive, so the extra chunks can be subtracted one by one, if their deltas are
kept. If the requested chunks are fewer than the extra ones, they are added up instead. Both are
slow: each delta is unpacked once for all the shards of an answer, and the work for one answer is
bounded.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from giaann_p2p.model.fingerprint import Fingerprint, fingerprint, fingerprints, none
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from giaann_p2p.swarm.wire.identity import Peer

PROOF_BYTES = 32
MOST_WEIGHED = 1 << 20
"""Number of connections fingerprinted in one go before it is cut short; takes about a second."""
_MOST_DELTAS = 128
"""Maximum number of deltas unpacked for one answer."""


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
    """Return fingerprints of the first of some shards, as many as a limit of work allows."""
    found, size = dict[int, ShardFingerprint](), 0
    for shard in shards:
        if size > MOST_WEIGHED:
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

    A proof is empty if the peer cannot give it. There is at least one proof; a limit of work bounds
    the number of others.
    """
    pasts: dict[int, _Past | None] = {}
    work, deltas = 0, Applied()
    for shard in shards:
        past = _past(store, shard, chunks, salt)
        needed = deltas | past.deltas if past else deltas
        if pasts and (work > MOST_WEIGHED or len(needed) > _MOST_DELTAS):
            break
        pasts[shard], deltas = past, needed
        work += past.work if past else 0
    sums = _of_deltas(store, {n: past.deltas for n, past in pasts.items() if past}, salt)
    weights = [past.weight(sums[n]) if past and n in sums else None for n, past in pasts.items()]
    return [b"" if weight is None else proof_of(weight, peer) for weight in weights]


class _Past(NamedTuple):
    """How to compute a shard's fingerprint for certain chunks only."""

    deltas: Applied
    """The chunks whose deltas this takes."""
    whole: Fingerprint | None = None
    """The fingerprint of the shard's whole content, from which the deltas are to be subtracted;
    None if the deltas are to be added up instead."""
    work: int = 0
    """The work done so far, in connections."""

    def weight(self, of_deltas: Fingerprint) -> Fingerprint:
        """Return the fingerprint, given the sum of the deltas' fingerprints."""
        return of_deltas if self.whole is None else self.whole - of_deltas


def _past(store: Store, shard: int, chunks: Applied, salt: bytes) -> _Past | None:
    """Return how to compute a shard's fingerprint for certain chunks; None if it is impossible."""
    now = store.sets([shard]).get(shard)
    if now is None or not chunks <= now:
        return None
    if len(chunks) <= len(now - chunks) and (few := _kept(store, shard, chunks)) is not None:
        return _Past(few)
    if _kept(store, shard, now - chunks) is None:  # check before copying the content
        return None
    held = store.content(shard)
    if not len(held.shards):  # the shard was dropped meanwhile
        return None
    beyond = _kept(store, shard, held.applied[0] - chunks)
    if beyond is None:
        return None
    return _Past(beyond, fingerprint(held.delta, salt), held.delta.connections)


def _kept(store: Store, shard: int, chunks: Applied) -> Applied | None:
    """Return the chunks of a set that are not withdrawn; None if a shard lacks one of their deltas.

    None also if these chunks are too many, or if the set has a withdrawal but not the withdrawn
    chunk, because the sum would need a delta that no peer has any more.
    """
    if not chunks.withdrawn <= chunks:
        return None
    left = chunks.left
    return left if len(left) <= _MOST_DELTAS and left <= store.retained_for(shard, left) else None


def _of_deltas(store: Store, wanted: Mapping[int, Applied], salt: bytes) -> dict[int, Fingerprint]:
    """Return, for each shard, the sum of the fingerprints of its wanted chunks' deltas.

    A shard is left out if one of its deltas was released meanwhile.
    """
    sums = {shard: none() for shard in wanted}
    shards_of: dict[tuple[bytes, int], list[int]] = {}
    for shard, chunks in wanted.items():
        for job in chunks:
            for chunk in chunks.of(job):
                shards_of.setdefault((job, chunk), []).append(shard)
    for (job, chunk), shards in shards_of.items():
        added = _of_updates(store, store.recall(job, chunk, shards), salt)
        for shard in shards:
            if shard not in added:
                sums.pop(shard, None)
            elif shard in sums:
                sums[shard] = sums[shard] + added[shard]
    return sums


def _of_updates(store: Store, updates: Iterable[Update], salt: bytes) -> dict[int, Fingerprint]:
    """Return the sums of the fingerprints of some updates, by shard."""
    found: dict[int, Fingerprint] = {}
    for update in updates:
        delta, shards = update.delta, update.shards
        at = np.searchsorted(shards, store.layout.shards_of(delta.concept, delta.feature))
        # Neurons beyond the last shard, or between two shards, have no row, so they add nothing.
        prints = fingerprints(delta, salt, at, len(shards) + 1)
        for shard, one in zip(shards.tolist(), prints, strict=False):
            found[shard] = found[shard] + one if shard in found else one
    return found
