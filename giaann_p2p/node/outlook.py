"""What is known of the other peers, as of the last look at the board.

A record ends after its lifetime, so that a peer that died is missed. But when it is the board that
cannot be read, nobody's record comes anew, and all would seem to be gone: a storage peer would
think itself alone, take all shards, and call them ready, empty. So the records' time stands still
soon after the last look that went well, and everything that asks about records goes by it. Whether
a peer answers is another matter, and goes by the true time.
"""

from collections.abc import Callable, Mapping, Sequence

from giaann_p2p.store.layout import Shards
from giaann_p2p.swarm.barring import Named
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.placement import Placement
from giaann_p2p.swarm.surroundings import Surroundings


class Outlook:
    """`Surroundings` whose records go by a time of their own; what `now` says they do not ask."""

    def __init__(self, around: Surroundings, time: Callable[[], float]) -> None:
        self.around, self._time = around, time

    def version(self, now: float) -> int:
        """Return a number that is another one when members or their shards have changed."""
        return self.around.version(self._time())

    def members(self, now: float) -> Mapping[Peer, int]:
        """Return the storage peers that are to hold something, with their capacities."""
        return self.around.members(self._time())

    def named(self, now: float) -> Named:
        """Return who is said, by whom, to hold something wrong of which shards."""
        return self.around.named(self._time())

    def placement(self, now: float) -> Placement:
        """Return who should hold which shard."""
        return self.around.placement(self._time())

    def workers(self, now: float) -> Mapping[Peer, int]:
        """Return the compute peers that are there, each with its free slots."""
        return self.around.workers(self._time())

    def sharing(self, shards: Shards, now: float) -> Mapping[Peer, list[int]]:
        """Return those that are there and say that they hold any of some shards, and which."""
        return self.around.sharing(shards, self._time())

    def ready(self, shard: int, now: float) -> Sequence[Peer]:
        """Return those that are there and say that a shard is ready with them."""
        return self.around.ready(shard, self._time())

    def witnesses(self, shard: int, now: float) -> Sequence[Peer]:
        """Return those that hold a shard, or may come back and hold it."""
        return self.around.witnesses(shard, self._time())

    def looked_at(self) -> float | None:
        """Return when the directory was looked up first; None if it never was so far."""
        return self.around.looked_at()

    def reachable(self, peer: Peer, now: float) -> bool:
        """Tell whether a peer is there and has answered lately."""
        return self.around.reachable(peer, now)

    def suspect(self, peer: Peer, now: float) -> None:
        """A peer did not answer, or not as it should."""
        self.around.suspect(peer, now)

    def heard(self, peer: Peer) -> None:
        """A peer answered."""
        self.around.heard(peer)
