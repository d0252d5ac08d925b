"""What a replica weighs: the fingerprint of what it holds, or held when it had fewer chunks.

Who is to show that it holds a shard has taken in more meanwhile than who asks. But fingerprints add
up: what came on top is taken away again, chunk by chunk, as long as its deltas are kept; or those
chunks are added up that are asked for, where these are few. It takes its time, and is cut short.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from giaann_p2p.model.fingerprint import Fingerprint, fingerprint, none
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.identity import Peer

PROOF_BYTES = 32
_MOST_WEIGHED = 1 << 20
"""Connections that are weighed in one go; they take about a second."""
_MOST_DELTAS = 64
"""Deltas that are taken away, or added up, for one shard."""
_A_DELTA = 1 << 13
"""What one of them counts for, in connections: a record of many shards may have to be unpacked."""


class Weight(NamedTuple):
    """What a replica weighs, and of which chunks that is."""

    chunks: Applied
    print: Fingerprint


Weights = Mapping[int, Weight]
"""By shard."""


def proof_of(found: Fingerprint, peer: Peer) -> bytes:
    """Return what shows that a peer holds something: of no use to another that passes it on."""
    data = found.astype("<u8").tobytes() + peer
    return hashlib.blake2b(data, digest_size=PROOF_BYTES, person=b"giaann proof").digest()


def weighed(store: Store, shards: Iterable[int], salt: bytes) -> dict[int, Weight]:
    """Weigh the first of some shards, as they are now: as many as do not take too long."""
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
    """Show that the first of some shards hold what some chunks come to; empty where that cannot be.

    As many are shown as do not take too long.
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
    """Return what a shard weighs as far as it comes from some chunks, and what finding out took."""
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
    """Add up what a shard got from some chunks; None if these are too many, or not kept.

    Also where some were withdrawn, and not those chunks alone: it had what nobody has any more.
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
            if not updates:  # it was let go of just now
                return None
            for update in updates:
                found += fingerprint(update.delta, salt)
    return found
