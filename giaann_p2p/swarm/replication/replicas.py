"""The state of one storage peer's replica of each shard, and the owners of each shard."""

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

from giaann_p2p.store.layout import Shards
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.replica import ReplicaState, Turn, turned
from giaann_p2p.swarm.wire.shardset import children

Owners = Sequence[Peer]


class Owned(Protocol):
    """Which peers own each shard; `Placement` implements it."""

    def owners(self, shard: int) -> Owners:
        """Return a shard's owners, in the order of the placement's preference."""
        ...

    def excluded(self, shard: int) -> frozenset[Peer]:
        """Return the peers excluded from owning a shard because their copy of it is wrong."""
        ...


class Replicas:
    """One peer's replicas of all shards, with their state transitions.

    Invariant: `_held` has, by state, the shards that are in that state in `_states`.
    """

    def __init__(self, me: Peer, shards: int, held: Iterable[int]) -> None:
        self.me = me
        self._states = [ReplicaState.ABSENT] * shards
        self._held = {state: set[int]() for state in ReplicaState}  # without the absent shards
        for shard in held:
            self._states[shard] = ReplicaState.SYNCING
            self._held[ReplicaState.SYNCING].add(shard)
        self._owners: list[Owners] = [()] * shards
        self.beside = frozenset[int]()
        """The shards that this peer should hold beside their owners (see `held_beside`)."""
        self._excluded: list[frozenset[Peer]] = [frozenset()] * shards
        self._since: dict[int, float] = {}  # time of each shard's last transition, if any
        self._begun: dict[int, float] = {}  # when each shard came, unless at the start
        self._all: dict[
            tuple[ReplicaState, ...], Shards
        ] = {}  # cache of `all`, cleared by each transition
        self._own: Shards | None = None  # cache of `own`, cleared by each transition and placement
        self.changes = 0
        """Number of state transitions and new placements so far."""

    def __repr__(self) -> str:
        counted = ", ".join(
            f"{len(self._held[s])} {s.name.lower()}" for s in list(ReplicaState)[1:]
        )
        return f"<Replicas: {counted}>"

    def doubled(self, shards: int) -> "Replicas":
        """Return the replicas after the shards are divided into `shards` in all.

        Each child has its parent's state since the same time, and its parent's owners until it is
        placed.
        """
        before, new = self.shards, Replicas(self.me, shards, ())
        new.changes = self.changes + 1
        new.beside = frozenset(children(self.beside, before, shards))
        for shard in range(shards):
            parent = shard % before
            state = new._states[shard] = self._states[parent]
            if state is not ReplicaState.ABSENT:
                new._held[state].add(shard)
            new._owners[shard], new._excluded[shard] = self._owners[parent], self._excluded[parent]
            for times, told in ((new._since, self._since), (new._begun, self._begun)):
                if parent in told:
                    times[shard] = told[parent]
        return new

    @property
    def shards(self) -> int:
        """The number of shards in the swarm."""
        return len(self._states)

    def holds(self, shard: int) -> bool:
        """Return whether this peer has a replica of a shard, in any state."""
        return self._states[shard] is not ReplicaState.ABSENT

    def state(self, shard: int) -> ReplicaState:
        """Return the state of this peer's replica of a shard."""
        return self._states[shard]

    def owners(self, shard: int) -> Owners:
        """Return a shard's owners, most preferred first; none before the first placement."""
        return self._owners[shard]

    def excluded(self, shard: int) -> frozenset[Peer]:
        """Return the peers excluded from owning a shard because their copy of it is wrong."""
        return self._excluded[shard]

    @property
    def disputed(self) -> list[int]:
        """The shards that this peer holds although it is excluded from owning them, ascending."""
        return [shard for shard in self.held.tolist() if self.me in self._excluded[shard]]

    def wanted(self, shard: int) -> bool:
        """Return whether this peer should hold a shard: as an owner, or beside its owners."""
        return self.me in self._owners[shard] or shard in self.beside

    @property
    def catching_up(self) -> list[int]:
        """The syncing shards, except those that placement assigns to other peers only.

        A peer that comes back may hold shards that others own by now; it only hands these over.
        """
        syncing = self.all(ReplicaState.SYNCING).tolist()
        return [shard for shard in syncing if self.wanted(shard) or not self._owners[shard]]

    def all(self, *states: ReplicaState) -> Shards:
        """Return the shards whose replica here is in one of some states, ascending."""
        found = self._all.get(states)
        if found is None:
            shards = [shard for state in states for shard in self._held[state]]
            found = self._all[states] = np.array(sorted(shards), np.uint16)
            found.flags.writeable = False
        return found

    @property
    def held(self) -> Shards:
        """The shards of which this peer has a replica, in any state, ascending."""
        return self.all(ReplicaState.SYNCING, ReplicaState.READY, ReplicaState.DRAINING)

    @property
    def own(self) -> Shards:
        """The shards that this peer should hold, and has a replica of in any state, ascending."""
        if self._own is None:
            own = [shard for shard in self.held.tolist() if self.wanted(shard)]
            self._own = np.array(own, np.uint16)
            self._own.flags.writeable = False
        return self._own

    def place(self, placement: Owned, now: float, beside: frozenset[int] = frozenset()) -> Shards:
        """Apply a new placement; return the shards that this peer begins to hold.

        `beside`: the shards that it should hold beside their owners.
        """
        begun = []
        self._own, self.beside = None, beside
        self.changes += 1
        for shard, state in enumerate(self._states):
            self._owners[shard] = placement.owners(shard)
            self._excluded[shard] = placement.excluded(shard)
            wanted = self.wanted(shard)
            if wanted and state is ReplicaState.ABSENT:
                begun.append(shard)
                self._begun[shard] = now
            if wanted and state in (ReplicaState.ABSENT, ReplicaState.DRAINING):
                self._turn(shard, Turn.WANTED, now)
            if not wanted and state is ReplicaState.READY:
                self._turn(shard, Turn.UNWANTED, now)
        return np.array(begun, np.uint16)

    def held_since(self, shard: int) -> float:
        """Return when this peer began to hold a shard; minus infinity if it did at its start."""
        return self._begun.get(shard, float("-inf"))

    def unchanged_for(self, shard: int, now: float) -> float:
        """Return for how many seconds this peer's replica of a shard has been in its state."""
        return now - self._since.get(shard, float("-inf"))

    def lingered(self, seconds: float, now: float) -> list[int]:
        """Return the shards that have been draining for so many seconds, ascending."""
        draining = self.all(ReplicaState.DRAINING).tolist()
        return [shard for shard in draining if self.unchanged_for(shard, now) >= seconds]

    def offer(self, shard: int, now: float) -> None:
        """Begin to hold a shard that other peers own, because too few of them have it ready."""
        self._begun[shard] = now
        self._turn(shard, Turn.OFFERED, now)

    def caught_up(self, shard: int, now: float) -> None:
        """Make a syncing shard ready."""
        self._turn(shard, Turn.CAUGHT_UP, now)

    def covered(self, shard: int, now: float) -> None:
        """Drop a shard that this peer does not own: the owners have everything that is here."""
        self._turn(shard, Turn.COVERED, now)

    def _turn(self, shard: int, turn: Turn, now: float) -> None:
        before = self._states[shard]
        self._states[shard] = after = turned(before, turn)
        self._since[shard] = now
        self._all.clear()
        self._own = None
        self._held[before].discard(shard)
        if after is not ReplicaState.ABSENT:
            self._held[after].add(shard)
        self.changes += 1
