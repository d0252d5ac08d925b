"""A swarm with hostile peers among its members: who they are, and how many replicas that takes.

Of six hostile peers two hold shards, for all else needs no shards. A shard has two replicas more
for each that may lie, and an update counts when one owner more has it: so a majority of each
shard's owners is honest, and of those that have an update two. Two compute peers have to come to
the same, and those that lie of what they learn do not agree with each other.
"""

import random
from collections.abc import Callable

from giaann_p2p.sim.hostile.forger import Forger, Forgery
from giaann_p2p.sim.hostile.liar import Liar, Lie
from giaann_p2p.sim.hostile.shirker import Shirker, Shirking
from giaann_p2p.sim.hostile.stranger import Pretence, Stranger
from giaann_p2p.sim.hostile.watch import Watch, watch_of
from giaann_p2p.sim.swarm import Rules, Swarm
from giaann_p2p.swarm.manifest import MOST_REPLICAS
from giaann_p2p.swarm.verifying import Verify

BEGINS = 40.0
"""When hostile peers begin to lie: until then they seem honest, and get what is theirs to hold."""
VERIFY = Verify(share=1.0)
"""How much of what they read honest clients compare."""
MOST = 90
Hostile = Liar | Shirker | Forger | Stranger
_PRETENCES = list(Pretence)

LIES = (
    frozenset({Lie.ROWS, Lie.ACKS, Lie.READY, Lie.COVERS, Lie.SHOWS}),
    frozenset({Lie.SOME_ROWS, Lie.READY, Lie.INVENTS, Lie.GARBAGE}),
)
SHIRKING = (
    frozenset({Shirking.KEEPS, Shirking.IMPOSSIBLE, Shirking.FALSE, Shirking.EMPTY}),
    frozenset({Shirking.SIGNS, Shirking.BOASTS, Shirking.ELSEWHERE}),
)
FORGERIES = frozenset(Forgery)


def founded(seed: int, hostile: int, everything: bool = False) -> Swarm:
    """Return a new swarm of members that will have so many hostile peers."""
    liars = sum(_kind(number) is _liar for number in range(hostile))
    replicas = min(3 + 2 * liars, MOST_REPLICAS)
    rules = Rules(replicas=replicas, quorum=2 + liars, redundancy=2)
    swarm = Swarm(seed, everything, rules=rules, admission="token")
    swarm.promises = Watch(swarm)
    return swarm


def join(swarm: Swarm, hostile: int) -> None:
    """Let hostile peers join."""
    for number in range(hostile):
        let(swarm, _kind(number)(swarm, number))


def let(swarm: Swarm, peer: Hostile, begins: float = BEGINS) -> None:
    """Let a hostile peer take part, and begin to lie at a time."""
    swarm.hostiles.append(peer)
    swarm.clock.at(begins, peer.begin_to_lie)


def leave(swarm: Swarm) -> None:
    """Let all hostile peers be silent for ever."""
    for peer in swarm.hostiles:
        peer.die()


def counts(swarm: Swarm) -> dict[str, int]:
    """Return what they did, and what came of it, how often; nothing where there are none."""
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
    """Return by how much a hostile peer's clock is wrong: up to an hour, less some for others'."""
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
