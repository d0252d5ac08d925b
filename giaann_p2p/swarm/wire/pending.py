"""Numbers for what was asked or ordered, and what is to be done when the outcome is known."""

from collections.abc import Callable
from typing import Generic, TypeVar

Outcome = TypeVar("Outcome")
Act = TypeVar("Act")


class Desk(Generic[Outcome, Act]):
    """What is under way."""

    def __init__(self) -> None:
        self._numbers = 0
        self._waiting: dict[int, Callable[[Outcome, float], list[Act]]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def number(self, then: Callable[[Outcome, float], list[Act]]) -> int:
        """Return a new number; `then` is called with the outcome and the time."""
        self._numbers += 1
        self._waiting[self._numbers] = then
        return self._numbers

    def done(self, number: int, outcome: Outcome, now: float) -> list[Act]:
        """Carry on; nothing follows from what is known already."""
        then = self._waiting.pop(number, None)
        return then(outcome, now) if then else []
