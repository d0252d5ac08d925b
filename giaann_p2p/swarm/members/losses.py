"""Data loss: shards of which storage peers remember more than any peer holds now.

A peer that held a shard ready announces it as missing while no peer that it knows has all of it
(see `KnownSets`). One such report is not enough: a shard counts as lost when the peers that report
it missing are more than half as many as those that have it now. If no peer has it, one report
suffices.

If no storage peer is left, compute peers remember when one last served a shard (see `LastServed`).
Then all shards count as lost, though it is not known what they held.
"""

from collections import Counter
from collections.abc import Collection

import msgspec

from giaann_p2p.swarm.members.directory import Directory
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.units import span


class Losses(msgspec.Struct, frozen=True, kw_only=True):
    """The shards that a swarm has lost, with a lower bound of their size."""

    shards: list[int] = []
    connections: int = 0
    """Lower bound of the number of connections that the lost shards held; 0 if it is unknown."""
    seen: int = 0
    """Time at which the lost shards were last seen whole, in seconds since 1970."""

    def __bool__(self) -> bool:
        return bool(self.shards)

    def words(self, now: float) -> str:
        """Return a phrase that says what is lost and when it was last seen; empty if nothing is."""
        if not self.shards:
            return ""
        many = f"{len(self.shards)} shard{'' if len(self.shards) == 1 else 's'}"
        ago = span(max(0.0, now - self.seen))
        held = f" held {self.connections:,} connections or more" if self.connections else ""
        return f"{many}{held}, last seen {ago} ago, and no live peer has all of them"


NONE = Losses()


def losses(directory: Directory, now: float, silent: Collection[Peer] = ()) -> Losses:
    """Return the shards that are lost by the live records of peers that are not silent."""
    live = [one for one in directory.live(now) if one.peer not in silent]
    said = [one for one in live if one.role == "storage"]
    missing, having, cold = Counter[int](), Counter[int](), set[int]()
    for one in said:
        sets = directory.sets_of(one)
        missing.update(sets.missing.tolist())
        having.update({*sets.ready.tolist(), *sets.syncing.tolist()})
        cold.update(sets.cold.tolist())
    lost = sorted(shard for shard, count in missing.items() if 2 * count > having[shard])
    if not lost:
        served = max((one.missing.seen for one in live if one.role == "compute"), default=0)
        has_any = having or cold
        every = range(directory.shards)
        return Losses(shards=[*every], seen=served) if served and not has_any else NONE
    return Losses(
        shards=lost,
        connections=max(one.missing.connections for one in said),
        seen=max(one.missing.seen for one in said),
    )
