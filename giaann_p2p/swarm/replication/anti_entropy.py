"""Anti-entropy: periodically asks other holders of this peer's shards which chunks they have."""

from collections.abc import Callable
from functools import partial

from giaann_p2p.errors import DamagedError, MessageError
from giaann_p2p.store.applied import Applied, memory_of
from giaann_p2p.swarm.replication.set_comparison import Sets, next_by_parts, question_of, words_of
from giaann_p2p.swarm.replication.shared import Shared
from giaann_p2p.swarm.wire.actions import Action, Call
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Compare, Refusal
from giaann_p2p.swarm.wire.replica import ReplicaState

_LOAD = 8
"""By which factor the pause between two comparisons with a peer exceeds the time that its last
answer took. More: a busy machine gets to rest sooner; less: hurried comparisons stay frequent."""

_MOST_FOREIGN = 96 << 20
"""Maximum memory in bytes of the sets of chunks that one peer reports, apart from what they share
with those here: enough for two sets of as many jobs as there may be."""


class AntiEntropy:
    """Compares sets of chunks with each peer that holds or owns one of this peer's shards.

    At most one question is in flight to each peer. In a large swarm a peer has hundreds of such
    partners, and mostly nothing has changed. Then it compares less often. A chunk that it missed is
    still found as soon: the other holders' sets have changed, so they ask soon, and their question
    shows that their sets differ.

    Where answers take long, comparisons slow down, as far as the peers' reports stay recent, and
    hurried ones to the usual interval at most. Otherwise peers that share an overloaded machine
    would keep each other busy until none of them could catch up.
    """

    def __init__(self, shared: Shared, then: Callable[[Peer, float], list[Action]]) -> None:
        self._settings, self._replicas = shared.settings, shared.replicas
        self._others, self._held, self._reports = shared.others, shared.held, shared.reports
        self._pending_calls, self._then = shared.calls, then
        self._asking: dict[Peer, bool] = {}  # peers being asked: whether the answer counts
        self._asked: dict[Peer, float] = {}  # time of each peer's last answer
        self._took: dict[Peer, float] = {}  # seconds that each peer's last answer took
        self._changed = shared.begun
        self._by_parts: dict[Peer, list[int]] = {}  # shards to compare by parts, by peer
        self._foreign: dict[Peer, int] = {}  # memory of the sets that each peer reported, at most
        self._seen, self._known = (-1, -1), dict[Peer, list[int]]()

    def hurry(self, peer: Peer, now: float) -> None:
        """Ask a peer again at the next opportunity, without waiting for the interval."""
        self._asked.pop(peer, None)

    def changed(self, now: float) -> None:
        """Note that chunks have changed, here or at another peer: compare at the usual interval."""
        self._changed = now

    def differs(self, peer: Peer, now: float) -> None:
        """Note that a peer's question showed other chunks; ignore a peer that is not a partner."""
        if peer in self._known:
            self._took.pop(peer, None)
            self.changed(now)

    def restarted(self, peer: Peer) -> None:
        """Handle a peer's restart: ignore an answer in flight, because the peer may have lost data.

        The answer could list chunks that the peer no longer has.
        """
        if peer in self._asking:
            self._asking[peer] = False

    def due(self, now: float) -> list[Action]:
        """Ask each reachable peer whose next comparison is due."""
        actions: list[Action] = []
        partners, pauses = self._partners(now), self._pauses(now)
        for peer, shards in partners.items():
            asked = self._asked.get(peer)
            if peer in self._asking:
                continue
            if asked is not None and now < asked + pauses(shards, self._took.get(peer, 0.0)):
                continue  # the common case
            if self._others.not_suspected(peer, now):
                actions += self._question(peer, shards, now)
        return actions

    def _partners(self, now: float) -> dict[Peer, list[int]]:
        """Return the peers that hold or own shards of this peer, with those shards."""
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
        if found != self._known:
            self.changed(now)
        self._asked = {peer: when for peer, when in self._asked.items() if peer in found}
        self._took = {peer: took for peer, took in self._took.items() if peer in found}
        self._by_parts = {peer: some for peer, some in self._by_parts.items() if peer in found}
        self._foreign = {peer: taken for peer, taken in self._foreign.items() if peer in found}
        return found

    def _question(self, peer: Peer, shards: list[int], now: float) -> list[Action]:
        mine = self._held.sets(shards)
        if not mine:
            return []  # the store does not hold these shards yet
        self._asking[peer] = True
        question = question_of(mine, self._replicas.shards, self._by_parts.get(peer, ()))
        number = self._pending_calls.number(partial(self._on_answer, peer, question, mine, now))
        return [Call(number, peer, question, self._settings.call_timeout)]

    def _on_answer(
        self,
        peer: Peer,
        question: Compare,
        mine: Sets,
        asked: float,
        answer: Message | None,
        now: float,
    ) -> list[Action]:
        counts, shards = self._asking.pop(peer), list(mine)
        self._asked[peer] = now
        self._took.pop(peer, None)  # silence has a backoff of its own
        if isinstance(answer, Refusal):
            self._others.heard(peer)
            return []
        before = {id(word.chunks): word.chunks for word in self._reports.by(peer)}
        try:
            words = words_of(answer, shards, mine, asked, question.parts, before.values())
            self._check_memory(peer, [word.chunks for word in words.values()], mine)
        except (MessageError, DamagedError):
            self._others.suspect(peer, now)
            return []
        self._others.heard(peer)
        self._took[peer] = now - asked
        left = [shard for shard in mine if shard not in words]
        others = [shard for shard in self._by_parts.get(peer, ()) if shard not in mine]
        self._by_parts[peer] = left + next_by_parts(mine, words) + others
        actions = self._question(peer, left, now) if left else []
        if not counts:
            return actions
        for shard, word in words.items():
            self._reports.heard(peer, shard, word)
            if word.chunks is not mine[shard]:
                self.changed(now)
        return actions + self._then(peer, now)

    def _check_memory(self, peer: Peer, sets: list[Applied], mine: Sets) -> None:
        """Raise MessageError if the sets of chunks that a peer reported take too much memory.

        An honest peer's sets resemble each other and share most of their memory. Replaced sets stay
        in the account until it exceeds the limit; then the memory is counted anew. It is also
        counted for a peer without an account, which may have been a partner before.
        """
        new = {id(one): one.foreign for one in sets}
        taken = self._foreign.get(peer, _MOST_FOREIGN + 1) + sum(new.values())
        if taken > _MOST_FOREIGN:
            kept = (word.chunks for word in self._reports.by(peer))
            taken = memory_of([*kept, *sets], max(mine.values(), key=len))
        if taken > _MOST_FOREIGN:
            raise MessageError("a peer reports too many different sets of chunks")
        self._foreign[peer] = taken

    def _pauses(self, now: float) -> Callable[[list[int], float], float]:
        """Return a function for the pause between two comparisons of some shards with a peer.

        Its second argument is the seconds that the peer's last answer took.
        """
        settings = self._settings
        is_calm = now - self._changed > settings.calm_after
        usual = settings.calm_every if is_calm else settings.compare_every
        syncing = self._replicas.all(ReplicaState.SYNCING).tolist()
        some = {*syncing, *self._replicas.lingered(settings.linger, now)}

        def pause(shards: list[int], took: float) -> float:
            slower = min(_LOAD * took, settings.word_counts - 2 * took)  # or words would be old
            if some.isdisjoint(shards):
                return max(usual, slower)
            return max(settings.hurry_every, min(settings.compare_every, slower))

        return pause
