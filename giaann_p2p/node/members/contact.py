"""Whether something outside can be reached: told once when it changes, and no more."""

import asyncio
import logging
from collections.abc import Awaitable
from typing import TypeVar

from giaann_p2p.errors import PeerError
from giaann_p2p.net.errors import Unreachable

T = TypeVar("T")

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 10.0


class Contact:
    """See the module."""

    def __init__(self, what: str, log: logging.Logger, within: float) -> None:
        self.failures = 0
        """Since it went well."""
        self._what, self._log, self._within = what, log, within

    @property
    def pause(self) -> float:
        """How long to wait before the next try."""
        return min(_FIRST_PAUSE * 2.0 ** max(0, self.failures - 1), _LONGEST_PAUSE)

    async def reached(self, deed: Awaitable[T]) -> T:
        """Return what comes of a deed; Unreachable if it fails or takes too long."""
        try:
            async with asyncio.timeout(self._within):
                found = await deed
        except TimeoutError:
            error: PeerError = Unreachable(f"no answer within {self._within:g} s")
        except PeerError as refusal:
            error = refusal
        else:
            if self.failures:
                self._log.info("%s is reached again", self._what)
            self.failures = 0
            return found
        self.failures += 1
        if self.failures == 1:
            self._log.warning("%s cannot be reached, trying again: %s", self._what, error)
        raise Unreachable(str(error))
