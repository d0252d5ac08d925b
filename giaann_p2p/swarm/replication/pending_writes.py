"""Writes that the store has not completed yet, and the shards that each of them changes.

A shard with a pending write must not be dropped. The other owners have proved only that they hold
the content from before the write, so a chunk that was just acknowledged could be lost.
"""

from collections import Counter
from collections.abc import Callable, Iterable

from giaann_p2p.errors import GiaannError
from giaann_p2p.swarm.wire.actions import Action
from giaann_p2p.swarm.wire.pending import PendingCalls


class PendingWrites(PendingCalls[GiaannError | None, Action]):
    """Pending store operations. Invariant: `_awaited` counts each shard's pending writes."""

    def __init__(self) -> None:
        super().__init__()
        self._into: dict[int, tuple[int, ...]] = {}
        self._awaited = Counter[int]()

    def taking(
        self, shards: Iterable[int], then: Callable[[GiaannError | None, float], list[Action]]
    ) -> int:
        """Register a write to some shards and return its number; `then` is given the outcome."""
        number = self.number(then)
        self._into[number] = tuple(shards)
        self._awaited.update(self._into[number])
        return number

    def done(self, number: int, outcome: GiaannError | None, now: float) -> list[Action]:
        """Complete a store operation and return its next actions; none if it is not pending."""
        self._awaited.subtract(into := self._into.pop(number, ()))
        for shard in into:
            if not self._awaited[shard]:
                del self._awaited[shard]
        return super().done(number, outcome, now)

    def into(self, number: int) -> tuple[int, ...]:
        """Return the shards that the write with this number changes; none once it is complete."""
        return self._into.get(number, ())

    def awaited_by(self, shard: int) -> bool:
        """Return whether a shard has a pending write."""
        return shard in self._awaited
