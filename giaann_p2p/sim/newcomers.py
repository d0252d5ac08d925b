"""Storage peers with huge capacity that join together, take all shards, and vanish for ever.

They run the honest code, like the machines of a laboratory that loses power. Chunks that other
peers acknowledged must survive, and chunks that only newcomers acknowledged must never have
counted. There are two kinds of histories:

- *young*: they vanish before they have standing, in two waves. Nothing at all may be lost.
- *old*: they stay until they have standing, so the others make cold copies of their shards; then
  they vanish. Chunks that no other peer or cold copy had by then are lost with them, as with any
  owner; all others are restored from cold copies.
"""

import random

from giaann_p2p.sim.storage import Kind, Storage
from giaann_p2p.sim.swarm import Swarm

_ROOM = 1 << 46
_COUNTS = (3, 5, 10)
_YOUNG = 0.8
"""Young newcomers vanish within this share of the time after which they would have standing."""


class Newcomers:
    """The newcomers of one history."""

    def __init__(self, swarm: Swarm, end: float, old: bool) -> None:
        self._swarm, self._end, self._old = swarm, end, old
        self._rng = random.Random(f"{swarm.seed} newcomers")
        self.there: list[Storage] = []
        swarm.clock.at(self._rng.uniform(60, 100), self._join)

    def _join(self) -> None:
        swarm, now = self._swarm, self._swarm.clock.now
        memory_only = self._rng.random() < 0.5
        for _ in range(self._rng.choice(_COUNTS)):
            kind = Kind(capacity=_ROOM, memory_only=memory_only, is_newcomer=True)
            name = f"newcomer{sum(peer.kind.is_newcomer for peer in swarm.storages)}"
            self.there.append(swarm.add_storage(name, kind))
        # A peer that came at `now` has standing when the oldest has been there for twice as long.
        stays = 1.5 * now if self._old else self._rng.uniform(1, _YOUNG * now)
        swarm.clock.at(min(now + stays, self._end), self._vanish)

    def _vanish(self) -> None:
        for peer in self.there:
            peer.crash(lost=True)
        self.there.clear()
        again = self._swarm.clock.now + self._rng.uniform(10, 60)
        if not self._old and again < self._end / 2:
            self._swarm.clock.at(again, self._join)
