"""The shards of one storage peer: what each is, and who should have it."""

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

from giaann_p2p.store.layout import Shards
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.replica import State, Turn, turned

Owners = Sequence[Peer]


class Owned(Protocol):
    """Who should hold which shard; see `Placement`."""

    def owners(self, shard: int) -> Owners:
        """Return a shard's owners, best first."""
        ...

    def barred(self, shard: int) -> frozenset[Peer]:
        """Return who is left out of a shard's owners, for what it holds of it is wrong."""
        ...


class Replicas:
    """States by shard, and the turns that they take."""

    def __init__(self, me: Peer, shards: int, held: Iterable[int]) -> None:
        self.me = me
        self._states = [State.ABSENT] * shards
        self._held = {state: set[int]() for state in State}  # but for those that are absent
        for shard in held:
            self._states[shard] = State.SYNCING
            self._held[State.SYNCING].add(shard)
        self._owners: list[Owners] = [()] * shards
        self._barred: list[frozenset[Peer]] = [frozenset()] * shards
        self._since: dict[int, float] = {}  # when it took its state, if not at once
        self._begun: dict[int, float] = {}  # when it began to be held, if not at once
        self._all: dict[tuple[State, ...], Shards] = {}  # as they are now, if they were asked for
        self.changes = 0
        """How often something changed so far."""

    def __repr__(self) -> str:
        counted = ", ".join(f"{len(self._held[s])} {s.name.lower()}" for s in list(State)[1:])
        return f"<Replicas: {counted}>"

    @property
    def shards(self) -> int:
        """How many there are in the swarm."""
        return len(self._states)

    def holds(self, shard: int) -> bool:
        """Tell whether anything of a shard is here."""
        return self._states[shard] is not State.ABSENT

    def state(self, shard: int) -> State:
        """Return what a shard is."""
        return self._states[shard]

    def owners(self, shard: int) -> Owners:
        """Return who should hold a shard, best first."""
        return self._owners[shard]

    def barred(self, shard: int) -> frozenset[Peer]:
        """Return who is left out of a shard's owners, for what it holds of it is wrong."""
        return self._barred[shard]

    @property
    def disputed(self) -> list[int]:
        """The shards that are held here and that this peer is barred from, ascending."""
        return [shard for shard in self.held.tolist() if self.me in self._barred[shard]]

    def wanted(self, shard: int) -> bool:
        """Tell whether this peer should hold a shard."""
        return self.me in self._owners[shard]

    def all(self, *states: State) -> Shards:
        """Return the shards that are one of these, ascending."""
        found = self._all.get(states)
        if found is None:
            shards = [shard for state in states for shard in self._held[state]]
            found = self._all[states] = np.array(sorted(shards), np.uint16)
            found.flags.writeable = False
        return found

    @property
    def held(self) -> Shards:
        """The shards of which anything is here, ascending."""
        return self.all(State.SYNCING, State.READY, State.DRAINING)

    def place(self, placement: Owned, now: float) -> Shards:
        """Learn who should have which shard now; return those that begin to be held here."""
        begun = []
        self.changes += 1
        for shard, state in enumerate(self._states):
            self._owners[shard] = placement.owners(shard)
            self._barred[shard] = placement.barred(shard)
            wanted = self.wanted(shard)
            if wanted and state is State.ABSENT:
                begun.append(shard)
                self._begun[shard] = now
            if wanted and state in (State.ABSENT, State.DRAINING):
                self._turn(shard, Turn.WANTED, now)
            if not wanted and state is State.READY:
                self._turn(shard, Turn.UNWANTED, now)
        return np.array(begun, np.uint16)

    def held_since(self, shard: int) -> float:
        """Return when a shard began to be held here; those that always were, were before all."""
        return self._begun.get(shard, float("-inf"))

    def unchanged_for(self, shard: int, now: float) -> float:
        """Return how long a shard has been what it is."""
        return now - self._since.get(shard, float("-inf"))

    def caught_up(self, shard: int, now: float) -> None:
        """A syncing shard has what a ready one has."""
        self._turn(shard, Turn.CAUGHT_UP, now)

    def covered(self, shard: int, now: float) -> None:
        """Others have all that is here, and it is not wanted here."""
        self._turn(shard, Turn.COVERED, now)

    def _turn(self, shard: int, turn: Turn, now: float) -> None:
        before = self._states[shard]
        self._states[shard] = after = turned(before, turn)
        self._since[shard] = now
        self._all.clear()
        self._held[before].discard(shard)
        if after is not State.ABSENT:
            self._held[after].add(shard)
        self.changes += 1
