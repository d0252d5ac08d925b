"""Watches whether a remote service can be reached, logs each change once, and paces the retries.

Finding no other peer is not logged as an error, because every swarm begins with a single peer.
"""

import asyncio
import logging
from collections.abc import Awaitable
from typing import TypeVar

from giaann_p2p.backoff import Backoff
from giaann_p2p.errors import PeerError
from giaann_p2p.net.errors import NobodyYet, Unreachable

T = TypeVar("T")

_BACKOFF = Backoff(first=1.0, longest=10.0)


class Contact:
    """Contact with one remote service.

    `what` names the service in the log; `within` is the timeout of one try, in seconds.
    """

    def __init__(self, what: str, log: logging.Logger, within: float) -> None:
        self.failures = 0
        """Number of failed tries since the last success."""
        self._what, self._log, self._within = what, log, within
        self._alone = self._in_trouble = False  # whether these two states were logged

    @property
    def pause(self) -> float:
        """Seconds to wait before the next try: exponential backoff from 1 s to 10 s."""
        return _BACKOFF._replace(failures=max(1, self.failures)).pause

    async def reached(self, deed: Awaitable[T]) -> T:
        """Return the result of one try to use the service; Unreachable if it fails or is late."""
        try:
            async with asyncio.timeout(self._within):
                found = await deed
        except TimeoutError:
            error: PeerError = Unreachable(f"no answer within {self._within:g} s")
        except PeerError as refusal:
            error = refusal
        else:
            self._is_well()
            return found
        self.failures += 1
        self._has_failed(error)
        raise Unreachable(str(error))

    def _is_well(self) -> None:
        if self._in_trouble:
            self._log.info("%s can be reached again", self._what)
        self.failures, self._alone, self._in_trouble = 0, False, False

    def _has_failed(self, error: PeerError) -> None:
        if isinstance(error, NobodyYet):
            if not self._alone:
                self._alone = True
                self._log.info("%s", error)
        elif not self._in_trouble:
            self._in_trouble = True
            self._log.warning("%s cannot be reached, trying again: %s", self._what, error)
