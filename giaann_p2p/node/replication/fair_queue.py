"""A fair queue: the peers whose work waits take turns, however much of it each has waiting.

With one queue for all, a peer that asks for much at once would delay every other peer by all of it,
until their questions time out.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Runs work for peers, at most `most` at a time; peers that wait are served round robin.

    Invariant: work waits only while `most` run.
    """

    def __init__(self, most: int) -> None:
        self._free = most
        self._waiting: dict[bytes, deque[_Waiting[T]]] = {}  # by peer, in the order of their turns

    def __repr__(self) -> str:
        return f"<FairQueue: work of {len(self._waiting)} peers waits>"

    def begin(self, peer: bytes, work: "_Work[T]") -> asyncio.Future[T]:
        """Begin some work of a peer now, or once it is the peer's turn; return its result."""
        if self._free:
            return self._begun(work)
        result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(peer, deque()).append((result, work))
        return result

    def _begun(self, work: "_Work[T]") -> asyncio.Future[T]:
        running = work()
        self._free -= 1
        running.add_done_callback(self._ended)
        return running

    def _ended(self, _: asyncio.Future[T]) -> None:
        self._free += 1
        while self._waiting and self._free:
            result, work = self._next()
            if result.done():  # cancelled
                continue
            try:
                self._begun(work).add_done_callback(partial(_pass_on, result))
            except RuntimeError as error:  # the threads have ended
                result.set_exception(error)

    def _next(self) -> "_Waiting[T]":
        """Remove and return the oldest work of the peer whose turn it is."""
        peer = next(iter(self._waiting))
        queue = self._waiting.pop(peer)
        found = queue.popleft()
        if queue:
            self._waiting[peer] = queue  # behind all other peers
        return found


_Work = Callable[[], asyncio.Future[T]]
_Waiting = tuple[asyncio.Future[T], _Work[T]]


def _pass_on(result: asyncio.Future[T], done: asyncio.Future[T]) -> None:
    if result.done():
        return
    if done.cancelled():
        result.cancel()
    elif (error := done.exception()) is not None:
        result.set_exception(error)
    else:
        result.set_result(done.result())
