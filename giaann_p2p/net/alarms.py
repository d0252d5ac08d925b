"""Timers by request: a heap in which setting, postponing and cancelling a timer are all cheap.

Most requests finish long before their timer is due. A timer that was postponed or cancelled
therefore stays in the heap (lazy deletion) until it reaches the top, or until most of the heap is
stale and it is rebuilt.
"""

from heapq import heapify, heappop, heappush

NEVER = float("inf")


class Alarms:
    """The times at which requests are due."""

    def __init__(self) -> None:
        self._due: dict[int, float] = {}
        self._heap: list[tuple[float, int]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def set(self, request: int, when: float) -> None:
        """Make a request due at a time, which replaces any time set before."""
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
        """Return the earliest time at which a request is due; NEVER if there is none."""
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
        """Return the requests that are due, the earliest first, and forget them."""
        due: list[int] = []
        while self.next() <= now:
            _, request = heappop(self._heap)
            del self._due[request]
            due.append(request)
        return due

    def _shrink(self) -> None:
        self._heap = [(when, request) for request, when in self._due.items()]
        heapify(self._heap)
