"""What the store was given to take in and has not told of yet, and for which shards that is.

Others have what was here before it. So a shard that something is being taken into is not let go
until the store has told: else what was acknowledged a moment ago would go with the shard.
"""

from collections import Counter
from collections.abc import Callable, Iterable

from giaann_p2p.errors import GiaannError
from giaann_p2p.swarm.actions import Action
from giaann_p2p.swarm.desk import Desk


class Deeds(Desk[GiaannError | None, Action]):
    """See the module."""

    def __init__(self) -> None:
        super().__init__()
        self._into: dict[int, tuple[int, ...]] = {}
        self._awaited = Counter[int]()

    def taking(
        self, shards: Iterable[int], then: Callable[[GiaannError | None, float], list[Action]]
    ) -> int:
        """Return a number for what some shards take in; `then` is told what came of it."""
        number = self.number(then)
        self._into[number] = tuple(shards)
        self._awaited.update(self._into[number])
        return number

    def done(self, number: int, outcome: GiaannError | None, now: float) -> list[Action]:
        """Carry on; nothing follows from what is known already."""
        self._awaited.subtract(into := self._into.pop(number, ()))
        for shard in into:
            if not self._awaited[shard]:
                del self._awaited[shard]
        return super().done(number, outcome, now)

    def into(self, number: int) -> tuple[int, ...]:
        """Return the shards that take something in, until it is told."""
        return self._into.get(number, ())

    def awaited_by(self, shard: int) -> bool:
        """Tell whether a shard is taking something in."""
        return shard in self._awaited
