"""Timers by request: a heap in which setting, postponing and cancelling a timer are all cheap.

Most requests finish long before their timers are due. So a postponed or cancelled timer stays in
the heap (lazy deletion) until it reaches the top, or until most of the heap is stale and the heap
is rebuilt.
"""

from heapq import heapify, heappop, heappush

NEVER = float("inf")
"""The time of a timer that is not set."""


class Alarms:
    """The timers of requests; at most one timer per request."""

    def __init__(self) -> None:
        self._due: dict[int, float] = {}
        self._heap: list[tuple[float, int]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def set(self, request: int, when: float) -> None:
        """Set a request's timer to a time, replacing any earlier setting."""
        before = self._due.get(request, NEVER)
        self._due[request] = when
        if when < before:
            heappush(self._heap, (when, request))
            if len(self._heap) > 2 * len(self._due) + 64:
                self._shrink()

    def drop(self, request: int) -> None:
        """Cancel a request's timer, if it has one."""
        self._due.pop(request, None)

    def next(self) -> float:
        """Return the earliest time at which a request is due; NEVER if no timer is set."""
        while self._heap:
            when, request = self._heap[0]
            due = self._due.get(request, NEVER)
            if due == when:
                return when
            heappop(self._heap)
            if due > when and due != NEVER:
                heappush(self._heap, (due, request))
        return NEVER

    def pop(self, now: float) -> list[int]:
        """Return the requests that are due, the earliest first, and remove their timers."""
        due: list[int] = []
        while self.next() <= now:
            _, request = heappop(self._heap)
            del self._due[request]
            due.append(request)
        return due

    def _shrink(self) -> None:
        self._heap = [(when, request) for request, when in self._due.items()]
        heapify(self._heap)
