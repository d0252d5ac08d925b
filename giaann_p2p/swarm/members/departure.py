"""Whether a leaving storage peer should wait for its shards to be handed over, and for what.

1. A shard is handed over when it has at least a quorum of owners, and all of them are ready and
   have everything that is here (see `coverage.covered`).
2. A peer that holds nothing of any text has nothing to hand over, and leaves at once.
3. If no other storage peer stays, no peer can take the shards. A peer with its shards on disk
   leaves at once, because they come back with it. A peer with its shards in memory alone waits,
   because they survive if another storage peer joins in time.
4. Otherwise it waits, but not for ever. Shards that it could not hand over stay on its disk.
"""

from collections.abc import Iterable
from enum import Enum

from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.record import Announcement


class Decision(Enum):
    """The next step of a leaving peer."""

    WAIT = "wait for those who are to take its shards"
    LEAVE = "leave: there is nothing to hand over"
    KEEP = "leave with its shards on its disk: nobody is there to take them"


def decided(me: Peer, live: Iterable[Announcement], taught: bool, durable: bool) -> Decision:
    """Decide whether a peer waits or leaves, by the live records that it knows.

    `taught`: the peer holds at least one chunk. `durable`: its shards are on disk.
    """
    if not taught:
        return Decision.LEAVE
    others = _others(me, live)
    stays = any(said.state != "draining" for said in others)
    return Decision.KEEP if durable and not stays else Decision.WAIT


def hindrance(me: Peer, live: Iterable[Announcement], quorum: int) -> str:
    """Return a phrase for the operator: what the shards of a leaving peer wait for."""
    others = _others(me, live)
    leaving = sum(said.state == "draining" for said in others)
    staying = len(others) - leaving
    if not others:
        return "no other storage peer is there to take them"
    if not staying:
        others_are = "the only other one is" if leaving == 1 else f"the {leaving} other ones are"
        return f"{others_are} leaving as well, and nobody stays to take them"
    if staying < quorum:
        return (
            f"only {staying} of the other storage peers {'is' if staying == 1 else 'are'} to stay,"
            f" and an update counts in this swarm when {quorum} have it"
        )
    return "those who are to have them are still fetching them"


def _others(me: Peer, live: Iterable[Announcement]) -> list[Announcement]:
    return [said for said in live if said.role == "storage" and said.peer != me]
