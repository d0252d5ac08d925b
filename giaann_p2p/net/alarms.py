"""When which request is due: cheap to set and to put off, however many are done long before.

A time that was put off, or is no longer needed, stays in the heap until it comes up, or until the
heap is mostly made of such.
"""

from heapq import heapify, heappop, heappush

NEVER = float("inf")


class Alarms:
    """Times by request."""

    def __init__(self) -> None:
        self._due: dict[int, float] = {}
        self._heap: list[tuple[float, int]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def set(self, request: int, when: float) -> None:
        """Let a request be due at a time, instead of at what was set before."""
        before = self._due.get(request, NEVER)
        self._due[request] = when
        if when < before:
            heappush(self._heap, (when, request))
            if len(self._heap) > 2 * len(self._due) + 64:
                self._shrink()

    def drop(self, request: int) -> None:
        """Let a request never be due."""
        self._due.pop(request, None)

    def next(self) -> float:
        """Return the earliest time; NEVER if there is none."""
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
