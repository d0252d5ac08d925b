"""Calls and orders that are under way, each with the function to call once its outcome arrives."""

from collections.abc import Callable
from typing import Generic, TypeVar

Outcome = TypeVar("Outcome")
Act = TypeVar("Act")


class PendingCalls(Generic[Outcome, Act]):
    """Calls and orders under way, by number.

    Invariant: a number is given out once, and its continuation is called at most once.
    """

    def __init__(self) -> None:
        self._numbers = 0
        self._waiting: dict[int, Callable[[Outcome, float], list[Act]]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def number(self, then: Callable[[Outcome, float], list[Act]]) -> int:
        """Return the number of a new call; `then` will be called with its outcome and the time."""
        self._numbers += 1
        self._waiting[self._numbers] = then
        return self._numbers

    def done(self, number: int, outcome: Outcome, now: float) -> list[Act]:
        """Call the continuation of a call, and return its actions; none if it was called before."""
        then = self._waiting.pop(number, None)
        return then(outcome, now) if then else []
