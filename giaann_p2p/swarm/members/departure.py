"""Decides whether a leaving storage peer waits until its shards are handed over.

1. A shard is handed over when it has at least a quorum of owners, and all of them are ready and
   have everything that the leaving peer has (see `coverage.covered`).
2. A peer that holds nothing of any text has nothing to hand over, and leaves at once.
3. If no other storage peer stays, no peer can take the shards. A peer with its shards on disk
   leaves at once, because they come back with it. A peer with its shards in memory alone waits,
   because they survive if another storage peer joins in time.
4. Otherwise the leaving peer waits, but not for ever. Shards that it cannot hand over in time stay
   on its disk.
"""

from collections.abc import Iterable
from enum import Enum

from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.record import Announcement


class Decision(Enum):
    """What a leaving storage peer does next."""

    WAIT = "wait until other peers have taken its shards"
    LEAVE = "leave: there is nothing to hand over"
    KEEP = "leave with its shards on disk: there is no peer to take them"


def decided(me: Peer, live: Iterable[Announcement], taught: bool, durable: bool) -> Decision:
    """Decide whether a leaving storage peer waits or leaves, by the live records that it knows.

    `taught`: whether the peer holds any chunk. `durable`: whether its shards are on disk.
    """
    if not taught:
        return Decision.LEAVE
    others = _others(me, live)
    stays = any(said.state != "draining" for said in others)
    return Decision.KEEP if durable and not stays else Decision.WAIT


def hindrance(me: Peer, live: Iterable[Announcement], quorum: int) -> str:
    """Return a phrase for the operator that says what the shards of a leaving peer wait for."""
    others = _others(me, live)
    leaving = sum(said.state == "draining" for said in others)
    staying = len(others) - leaving
    if not others:
        return "there is no other storage peer to take them"
    if not staying:
        many = "the only other storage peer is" if leaving == 1 else f"all {leaving} others are"
        return f"{many} leaving as well, so none stays to take them"
    if staying < quorum:
        return (
            f"only {staying} other storage peer{' stays' if staying == 1 else 's stay'},"
            f" but an update needs {quorum} owners in this swarm"
        )
    return "their new owners are still fetching them"


def _others(me: Peer, live: Iterable[Announcement]) -> list[Announcement]:
    return [said for said in live if said.role == "storage" and said.peer != me]
