"""Asking the other holders of this peer's shards, in turn, which chunks they have."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Protocol

import numpy as np

from giaann_p2p.errors import DamagedError, MessageError
from giaann_p2p.store.applied import MOST_JOBS, Applied
from giaann_p2p.store.layout import Shards
from giaann_p2p.swarm.actions import Action, Call
from giaann_p2p.swarm.desk import Desk
from giaann_p2p.swarm.evidence import Evidence, Word
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.messages import Compare, Compared, Message, Refused
from giaann_p2p.swarm.replica import State
from giaann_p2p.swarm.replicas import Replicas
from giaann_p2p.swarm.settings import Settings
from giaann_p2p.swarm.shardset import packed

Sets = dict[int, Applied]
_STATES = {state.value: state for state in State}
_NOTHING = Applied()


class Others(Protocol):
    """What is known of the other peers; see `Surroundings`."""

    def version(self, now: float) -> int:
        """Return a number that is another one when members or their shards have changed."""
        ...

    def sharing(self, shards: Shards, now: float) -> Mapping[Peer, list[int]]:
        """Return those that are there and say that they hold any of some shards, and which."""
        ...

    def reachable(self, peer: Peer, now: float) -> bool:
        """Tell whether a peer is there and has answered lately."""
        ...

    def suspect(self, peer: Peer, now: float) -> None:
        """A peer did not answer, or not as it should."""
        ...

    def heard(self, peer: Peer) -> None:
        """A peer answered."""
        ...


class Held(Protocol):
    """What is in the store; see `Store`."""

    def sets(self, shards: Iterable[int]) -> dict[int, Applied]:
        """Return the chunks that some shards have taken in, as they are now."""
        ...

    def retained_for(self, shard: int) -> Applied:
        """Return the chunks whose deltas for a shard are kept."""
        ...


class Comparing:
    """One question at a time to each peer that holds, or should hold, what is held here."""

    def __init__(
        self,
        settings: Settings,
        replicas: Replicas,
        others: Others,
        held: Held,
        evidence: Evidence,
        desk: Desk[Message | None, Action],
        then: Callable[[Peer, float], list[Action]],
    ) -> None:
        self._settings, self._replicas, self._others = settings, replicas, others
        self._held, self._evidence, self._desk, self._then = held, evidence, desk, then
        self._asking: dict[Peer, bool] = {}  # whether its answer will count
        self._next: dict[Peer, float] = {}
        self._seen, self._known = (-1, -1), dict[Peer, list[int]]()

    def hurry(self, peer: Peer, now: float) -> None:
        """Ask a peer again at once."""
        self._next[peer] = now

    def restarted(self, peer: Peer) -> None:
        """A peer began anew: what it was asked before, it may answer from what it lost."""
        if peer in self._asking:
            self._asking[peer] = False

    def due(self, now: float) -> list[Action]:
        """Ask those whose turn it is."""
        actions: list[Action] = []
        for peer, shards in self._partners(now).items():
            if peer in self._asking or now < self._next.get(peer, now):  # as nearly always
                continue
            if self._others.reachable(peer, now):
                actions += self._question(peer, shards, now)
        return actions

    def _partners(self, now: float) -> dict[Peer, list[int]]:
        """Return who holds, or should hold, which of the shards that are held here."""
        seen = self._others.version(now), self._replicas.changes
        if seen != self._seen:
            self._seen, self._known = seen, self._looked_up(now)
        return self._known

    def _looked_up(self, now: float) -> dict[Peer, list[int]]:
        held = self._replicas.held
        shared = {peer: {*some} for peer, some in self._others.sharing(held, now).items()}
        for shard in held.tolist():
            for peer in self._replicas.owners(shard):
                shared.setdefault(peer, set()).add(shard)
        shared.pop(self._replicas.me, None)
        order = sorted((min(some), peer) for peer, some in shared.items())
        found = {peer: sorted(shared[peer]) for _, peer in order}
        self._next = {peer: when for peer, when in self._next.items() if peer in found}
        return found

    def _question(self, peer: Peer, shards: list[int], now: float) -> list[Action]:
        mine = self._held.sets(shards)
        if not mine:
            return []  # they are about to be held
        self._asking[peer] = True
        shards = list(mine)
        marks = [chunks.digest for chunks in mine.values()]
        question = Compare(packed(np.array(shards, np.uint16), self._replicas.shards), marks)
        number = self._desk.number(partial(self._told, peer, shards, mine, now))
        return [Call(number, peer, question, self._settings.call_timeout)]

    def _told(
        self,
        peer: Peer,
        shards: list[int],
        mine: Sets,
        asked: float,
        answer: Message | None,
        now: float,
    ) -> list[Action]:
        counts = self._asking.pop(peer)
        self._next[peer] = now + self._pause(shards)
        if isinstance(answer, Refused):
            self._others.heard(peer)
            return []
        try:
            words = words_of(answer, shards, mine, asked)
        except (MessageError, DamagedError):
            self._others.suspect(peer, now)
            return []
        self._others.heard(peer)
        if not counts:
            return []
        for shard, word in words.items():
            self._evidence.heard(peer, shard, word)
        return self._then(peer, now)

    def _pause(self, shards: list[int]) -> float:
        hurried = self._replicas.all(State.SYNCING, State.DRAINING)
        hurry = len(hurried) > 0 and not {*shards}.isdisjoint(hurried.tolist())
        return self._settings.hurry_every if hurry else self._settings.compare_every


def words_of(
    answer: Message | None, shards: list[int], mine: Sets, asked: float
) -> dict[int, Word]:
    """Read an answer; MessageError or DamagedError for none, and for one that cannot be."""
    if not isinstance(answer, Compared):
        raise MessageError("no answer to a comparison")
    states = answer.states.decode("latin-1")
    if not len(states) == len(answer.which) == len(shards) or not _STATES.keys() >= {*states}:
        raise MessageError("states: not one for each shard")
    if answer.which and not -1 <= min(answer.which) <= max(answer.which) < len(answer.sets):
        raise MessageError("which: there is no such set")
    sets, jobs, like = list[Applied](), 0, _NOTHING
    if answer.sets:  # most jobs have the same chunks
        like = max(mine.values(), key=len, default=like)
    for data in answer.sets:
        sets.append(Applied.received(data).sharing(like))
        jobs += sets[-1].jobs
        if jobs > MOST_JOBS:
            raise MessageError(f"sets: of more than {MOST_JOBS:,} jobs together")
    words = {}
    for shard, letter, at in zip(shards, states, answer.which, strict=True):
        state = _STATES[letter]
        same = _NOTHING if state is State.ABSENT else mine[shard]
        words[shard] = Word(state, same if at < 0 else sets[at], asked)
    return words
