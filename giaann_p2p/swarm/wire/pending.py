"""Continuations of calls and orders that are under way, by number."""

from collections.abc import Callable
from typing import Generic, TypeVar

Outcome = TypeVar("Outcome")
Act = TypeVar("Act")


class PendingCalls(Generic[Outcome, Act]):
    """Calls and orders under way. Invariant: a number is used once, and done at most once."""

    def __init__(self) -> None:
        self._numbers = 0
        self._waiting: dict[int, Callable[[Outcome, float], list[Act]]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def number(self, then: Callable[[Outcome, float], list[Act]]) -> int:
        """Return a new number; `then` will be called with the outcome and the time."""
        self._numbers += 1
        self._waiting[self._numbers] = then
        return self._numbers

    def done(self, number: int, outcome: Outcome, now: float) -> list[Act]:
        """Continue with an outcome, and return what follows; nothing if it was done before."""
        then = self._waiting.pop(number, None)
        return then(outcome, now) if then else []
