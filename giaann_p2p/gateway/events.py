"""`GET /api/events`: sends listeners each change as soon as it is seen.

One look at the swarm serves all listeners; without listeners there are no looks. The feed does not
wait for a listener that does not read: such a listener misses events that newer ones replace.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from giaann_p2p.errors import GiaannError
from giaann_p2p.gateway.backend import Backend
from giaann_p2p.gateway.context import Context
from giaann_p2p.gateway.metrics import Metrics
from giaann_p2p.gateway.rates import Rates
from giaann_p2p.gateway.sse import COMMENT, Events, EventStream, event

_LOG = logging.getLogger("giaann.gateway")
_EVERY = 1.0
"""Seconds between two looks."""
_QUIET = 15.0
"""Seconds without an event after which a comment is sent."""


class Feed:
    """The newest event of each kind, for all listeners of a gateway."""

    def __init__(self, backend: Backend, metrics: Metrics, draining: asyncio.Event) -> None:
        self._backend, self._metrics, self._draining = backend, metrics, draining
        self._newest: dict[str, tuple[int, bytes]] = {}
        self._said: dict[str, Any] = {}
        self._number = 0
        self._changed = asyncio.Condition()
        self._listeners = 0
        self.looking: asyncio.Task[None] | None = None
        """The task that asks the backend for news; None before the first listener. It ends when no
        listener is left."""

    async def listen(self) -> Events:
        """Yield the newest events, and then each new one, until the gateway ends."""
        self._listeners += 1
        self._metrics.listeners.set(self._listeners)
        if self.looking is None or self.looking.done():
            self._newest.clear()
            self.looking = asyncio.create_task(self._look())
        seen = 0
        try:
            yield COMMENT
            while not self._draining.is_set():
                news = self._since(seen)
                if not news and await self._waited(seen):
                    yield COMMENT
                for at, one in news:
                    seen = max(seen, at)
                    yield one
        finally:
            self._listeners -= 1
            self._metrics.listeners.set(self._listeners)

    async def end(self) -> None:
        """Wake all listeners, so that they see that the gateway ends."""
        if self.looking is not None:
            self.looking.cancel()
            await asyncio.gather(self.looking, return_exceptions=True)
        async with self._changed:
            self._changed.notify_all()

    def _since(self, seen: int) -> list[tuple[int, bytes]]:
        """Return the newest events with higher numbers than `seen`, in their order."""
        return sorted(one for one in self._newest.values() if one[0] > seen)

    async def _waited(self, seen: int) -> bool:
        """Wait for a newer event; return True if none came for a while."""
        try:
            async with asyncio.timeout(_QUIET), self._changed:
                await self._changed.wait_for(lambda: self._since(seen) or self._draining.is_set())
        except TimeoutError:
            return True
        return False

    async def _look(self) -> None:
        """Look once a second while there are listeners."""
        loop = asyncio.get_running_loop()
        due, rates = loop.time(), Rates(self._metrics)
        while self._listeners:
            _, now, _ = await asyncio.gather(
                self._told("status", self._backend.status),
                self._told("peers", self._backend.peers),
                self._told("jobs", self._backend.jobs),
            )
            await self._put("rates", rates.now(time.time(), now))
            due = max(due + _EVERY, loop.time())
            await asyncio.sleep(due - loop.time())

    async def _told(self, name: str, ask: Callable[[], Awaitable[Any]]) -> Any:  # noqa: ANN401
        """Ask the backend, publish its answer if new, and return it; None if it has none."""
        try:
            found = await ask()
            await self._put(name, msgspec.to_builtins(found))
            return found
        except GiaannError as error:
            if name == "status":
                await self._put(name, {"verdict": "unreachable", "why": str(error), "do": ""})
        except Exception:  # noqa: BLE001  (logged; other events are unaffected)
            _LOG.exception("the event %s could not be made", name)
        return None

    async def _put(self, name: str, data: Any) -> None:  # noqa: ANN401  (anything JSON has)
        """Make an event the newest of its kind, unless it equals the last one."""
        said = {**data, "now": 0} if isinstance(data, dict) else data  # "now" always differs
        if name in self._newest and self._said.get(name) == said:
            return
        self._number += 1
        self._said[name], self._newest[name] = said, (self._number, event(name, data))
        async with self._changed:
            self._changed.notify_all()


def events(feed: Feed) -> Callable[[Context, Request], Awaitable[Response]]:
    """Return the handler of requests for a feed's events."""

    async def handle(context: Context, request: Request) -> Response:
        return EventStream(feed.listen())

    return handle
