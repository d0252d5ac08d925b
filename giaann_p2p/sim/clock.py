"""Time that passes only when everything that was to happen by then has happened."""

import heapq
from collections.abc import Callable

Event = Callable[[], None]


class Clock:
    """Events in the order of their times; those of one time in the order in which they came."""

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Event]] = []
        self._count = 0

    def at(self, when: float, event: Event) -> None:
        """Let something happen at a time."""
        self._count += 1
        heapq.heappush(self._events, (max(when, self.now), self._count, event))

    def after(self, seconds: float, event: Event) -> None:
        """Let something happen after a while, or at once."""
        self._count += 1
        heapq.heappush(self._events, (self.now + seconds, self._count, event))

    def run_until(self, end: float) -> None:
        """Let everything happen up to a time."""
        events, pop = self._events, heapq.heappop
        while events and events[0][0] <= end:
            self.now, _, event = pop(events)
            event()
        self.now = end
