"""Rules on peers' reports: when a replica is ready, when it or a delta may be dropped."""

from collections.abc import Iterable, Mapping, Sequence

from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.replication.peer_reports import PeerReport
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.replica import ReplicaState

Words = Mapping[Peer, PeerReport]
"""Recent reports on one shard, by the peer that sent each."""


def caught_up(mine: Applied, words: Words) -> bool:
    """Return whether `mine` has every chunk of at least one replica that serves reads."""
    return any(word.state.serves and word.chunks <= mine for word in words.values())


def may_begin(mine: Applied, words: Words, others: Iterable[PeerReport], quorum: int) -> bool:
    """Return whether a shard that is ready nowhere may become ready here with the chunks `mine`.

    No report in `words` may be of a ready replica, or of a chunk that is missing from `mine`. A
    quorum of owners, this peer included, must be syncing the shard; `others` are the reports of the
    other owners.
    """
    if any(word.state.serves or not word.chunks <= mine for word in words.values()):
        return False
    return 1 + sum(word.state is ReplicaState.SYNCING for word in others) >= quorum


def covered(mine: Applied, words: Words, owners: Sequence[Peer], quorum: int, since: float) -> bool:
    """Return whether a quorum of a shard's owners report it ready with every chunk in `mine`.

    These reports must be of time `since` or later. They are not enough to drop this peer's replica:
    all owners must also prove that they hold the chunks (see `HandoverProof`). So an owner that is
    silent now proved it shortly before. But no report may contradict that: the result is False if
    any owner lacks a chunk, or gives the shard up itself.
    """
    told = [words[peer] for peer in owners if peer in words]
    if not all(mine <= word.chunks and _stays(word) for word in told):
        return False
    ready = [word for word in told if word.state is ReplicaState.READY and word.asked >= since]
    return len(ready) >= quorum


def _stays(word: PeerReport) -> bool:
    return word.state in (ReplicaState.SYNCING, ReplicaState.READY)


def all_ready(words: Words, owners: Iterable[Peer]) -> bool:
    """Return whether all owners of a shard report it ready."""
    told = [words.get(peer) for peer in owners]
    return all(word and word.state is ReplicaState.READY for word in told)


def everywhere(mine: Applied, told: Iterable[PeerReport | None], since: float) -> Applied:
    """Return the chunks in `mine` that every other replica of a shard is known to have.

    `told` has the last report of each peer that holds the shard or may come back with it, or None
    if that peer never reported. The result is empty if any peer never reported, or reported a chunk
    that is missing from `mine`. A peer is skipped if it reported at time `since` or later that it
    is not ready and has no chunks: it will fetch the whole shard. `DeltaRelease` explains why.
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
