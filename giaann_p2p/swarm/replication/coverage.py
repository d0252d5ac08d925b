"""Pure rules on peers' reports: when a replica is ready or may be dropped, which deltas may go."""

from collections.abc import Iterable, Mapping, Sequence

from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.replication.peer_reports import PeerReport
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.replica import ReplicaState

Words = Mapping[Peer, PeerReport]
"""Recent reports on one shard, by peer."""


def caught_up(mine: Applied, words: Words) -> bool:
    """Return whether a replica has every chunk that any ready replica reported recently."""
    return any(word.state.serves and word.chunks <= mine for word in words.values())


def may_begin(mine: Applied, words: Words, others: Iterable[Peer], quorum: int) -> bool:
    """Return whether a shard without a ready replica may become ready with its chunks here.

    `others` are its other owners. With this peer, a quorum of owners must have reported the shard
    as syncing, and no report may name a chunk that is missing here.
    """
    if any(word.state.serves for word in words.values()):
        return False
    there = [words[peer] for peer in others if peer in words]
    if any(not word.chunks <= mine for word in words.values()):
        return False
    return 1 + sum(word.state is ReplicaState.SYNCING for word in there) >= quorum


def covered(mine: Applied, words: Words, owners: Sequence[Peer], quorum: int) -> bool:
    """Return whether all owners report that they are ready and have every chunk that is here.

    A report is not enough to drop the replica: owners must also prove it (see `HandoverProof`).
    """
    told = [words[peer] for peer in owners if peer in words]
    return all_ready(words, owners, quorum) and all(mine <= word.chunks for word in told)


def all_ready(words: Words, owners: Sequence[Peer], quorum: int) -> bool:
    """Return whether all owners of a shard report that they are ready.

    There must be at least a quorum of owners: with fewer, the replica here cannot be spared.
    """
    told = [words.get(peer) for peer in owners]
    return len(told) >= quorum and all(word and word.state is ReplicaState.READY for word in told)


def everywhere(mine: Applied, told: Iterable[PeerReport | None], since: float) -> Applied:
    """Return the chunks that every peer that holds a shard, or may come back with it, has applied.

    A peer that reported at time `since` or later that it is not ready and has no chunk yet is left
    out. The result is empty if any peer has not reported, or has a chunk that is missing here:
    `DeltaRelease` explains why.
    """
    found = mine
    for word in told:
        if word is None or not word.chunks <= mine:
            return Applied()
        if word.asked < since or not _is_passing(word):
            found &= word.chunks
    return found


def _is_passing(word: PeerReport) -> bool:
    return word.state is not ReplicaState.READY and not word.chunks
