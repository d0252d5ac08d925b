"""Writes that the store has not completed yet, with the shards that they change.

Other peers have proved only that they hold what was here before these writes. So a shard with a
pending write is not dropped: otherwise a recently acknowledged chunk would vanish with it.
"""

from collections import Counter
from collections.abc import Callable, Iterable

from giaann_p2p.errors import GiaannError
from giaann_p2p.swarm.wire.actions import Action
from giaann_p2p.swarm.wire.pending import PendingCalls


class PendingWrites(PendingCalls[GiaannError | None, Action]):
    """Pending calls to the store. Invariant: `_awaited` counts the pending writes of each shard."""

    def __init__(self) -> None:
        super().__init__()
        self._into: dict[int, tuple[int, ...]] = {}
        self._awaited = Counter[int]()

    def taking(
        self, shards: Iterable[int], then: Callable[[GiaannError | None, float], list[Action]]
    ) -> int:
        """Return the number of a new write into some shards; `then` is called with the outcome."""
        number = self.number(then)
        self._into[number] = tuple(shards)
        self._awaited.update(self._into[number])
        return number

    def done(self, number: int, outcome: GiaannError | None, now: float) -> list[Action]:
        """Complete a call and return what follows; no actions for a number that is not pending."""
        self._awaited.subtract(into := self._into.pop(number, ()))
        for shard in into:
            if not self._awaited[shard]:
                del self._awaited[shard]
        return super().done(number, outcome, now)

    def into(self, number: int) -> tuple[int, ...]:
        """Return the shards of a pending write; none if it is complete or not a write."""
        return self._into.get(number, ())

    def awaited_by(self, shard: int) -> bool:
        """Return whether a shard has a pending write."""
        return shard in self._awaited
