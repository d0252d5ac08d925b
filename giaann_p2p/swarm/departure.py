"""Why a storage peer that is to leave is still here, in words for who runs it.

1. It has handed a shard over when all who own it now are ready and have all that is here, a quorum
   at least (see `judgement.covered`). So it waits where too few stay; where all leave together they
   would wait for one another for ever.
2. It waits only so long. What it could not hand over stays on its disk, and comes back with it.
"""

from collections.abc import Iterable

from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.record import Announcement


def hindrance(me: Peer, live: Iterable[Announcement], quorum: int) -> str:
    """Say what the shards of a leaving peer wait for, by the live records that it knows."""
    others = [said for said in live if said.role == "storage" and said.peer != me]
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
