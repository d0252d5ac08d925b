"""A swarm with hostile peers among its members: their kinds, and the replicas needed against them.

Of every six hostile peers, two are liars, which hold shards; the other kinds do harm without them.
Each liar adds two replicas to every shard, and one owner to the quorum. So a majority of each
shard's owners is honest, and so are two of the owners in every quorum. Two compute peers must
produce the same result for a chunk, and those that lie about results never agree with each other.
"""

import random
from collections.abc import Callable

from giaann_p2p.sim.hostile.flooder import Flooder
from giaann_p2p.sim.hostile.forger import Forger, Forgery
from giaann_p2p.sim.hostile.liar import Liar, Lie
from giaann_p2p.sim.hostile.shirker import Shirker, Shirking
from giaann_p2p.sim.hostile.stranger import Pretence, Stranger
from giaann_p2p.sim.hostile.watch import Watch, watch_of
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.sim.world import Rules
from giaann_p2p.swarm.reading.row_vote import Verify
from giaann_p2p.swarm.wire.manifest import MOST_REPLICAS

BEGINS = 40.0
"""The virtual time at which hostile peers begin to lie, in seconds; until then they act honestly,
and get shards."""
VERIFY = Verify(share=1.0)
"""The share of the read rows that honest clients compare between owners."""
MOST = 90
Hostile = Liar | Shirker | Forger | Stranger | Flooder
_PRETENCES = list(Pretence)

LIES = (
    frozenset({Lie.ROWS, Lie.ACKS, Lie.READY, Lie.COVERS, Lie.SHOWS}),
    frozenset({Lie.SOME_ROWS, Lie.SAME, Lie.READY, Lie.INVENTS, Lie.GARBAGE, Lie.SLANDERS}),
)
SHIRKING = (
    frozenset({Shirking.KEEPS, Shirking.IMPOSSIBLE, Shirking.FALSE, Shirking.EMPTY}),
    frozenset({Shirking.SIGNS, Shirking.BOASTS, Shirking.ELSEWHERE}),
)
FORGERIES = frozenset(Forgery)


def founded(
    seed: int, hostile: int, everything: bool = False, profile: str = "words", cut: int = 0
) -> Swarm:
    """Return a new swarm that needs tokens, with enough replicas for this many hostile peers."""
    liars = sum(_kind(number) is _liar for number in range(hostile))
    replicas = min(3 + 2 * liars, MOST_REPLICAS)
    rules = Rules(replicas=replicas, quorum=2 + liars, redundancy=2, profile=profile, cut=cut)
    swarm = Swarm(seed, everything, rules=rules, admission="token")
    swarm.promises = Watch(swarm)
    return swarm


def join(swarm: Swarm, hostile: int) -> None:
    """Add `hostile` hostile peers to a swarm, of all kinds in turn."""
    for number in range(hostile):
        let(swarm, _kind(number)(swarm, number))


def let(swarm: Swarm, peer: Hostile, begins: float = BEGINS) -> None:
    """Add one hostile peer, which begins to lie at the virtual time `begins`."""
    swarm.hostiles.append(peer)
    swarm.clock.at(begins, peer.begin_to_lie)


def leave(swarm: Swarm) -> None:
    """Kill all hostile peers of a swarm."""
    for peer in swarm.hostiles:
        peer.die()


def counts(swarm: Swarm) -> dict[str, int]:
    """Return counts of hostile acts and their outcomes; empty if there are no hostile peers."""
    if not swarm.hostiles:
        return {}
    directories = [node.around.directory for node in swarm.nodes if node not in swarm.hostiles]
    found = watch_of(swarm).counts
    found["records refused"] = sum(directory.refused for directory in directories)
    return dict(sorted(found.items()))


def _liar(swarm: Swarm, number: int) -> Liar:
    return Liar(swarm, f"liar{number}", _skew(swarm, number), LIES[number % len(LIES)])


def _shirker(swarm: Swarm, number: int) -> Shirker:
    ways = SHIRKING[number % len(SHIRKING)]
    return Shirker(swarm, f"shirker{number}", _skew(swarm, number), ways)


def _forger(swarm: Swarm, number: int) -> Forger:
    return Forger(swarm, f"forger{number}", _skew(swarm, number), FORGERIES)


def _stranger(swarm: Swarm, number: int) -> Stranger:
    pretence = _PRETENCES[(swarm.seed + number // len(_KINDS)) % len(_PRETENCES)]
    return Stranger(swarm, f"stranger{number}", _skew(swarm, number), pretence)


def _skew(swarm: Swarm, number: int) -> float:
    """Return a hostile clock's error in seconds; it is less than an hour from honest clocks."""
    return random.Random(f"{swarm.seed} {number} skew").choice((0.0, -1700.0, 1700.0))


_KINDS: tuple[Callable[[Swarm, int], Hostile], ...] = (
    _liar,
    _liar,
    _shirker,
    _shirker,
    _forger,
    _stranger,
)


def _kind(number: int) -> Callable[[Swarm, int], Hostile]:
    return _KINDS[number % len(_KINDS)]
