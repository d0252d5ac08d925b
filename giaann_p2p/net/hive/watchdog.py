"""Monitors p2pd, and disconnects strangers while p2pd exceeds its limits (see daemon_limits.py).

A stranger is spared at the first check after it has connected, because it may be about to say
hello.
"""

import asyncio
import logging
from collections.abc import Callable

from giaann_p2p.net.hive.control import Control
from giaann_p2p.net.hive.daemon_limits import DaemonWatch, Remedy, WatchLimits
from giaann_p2p.net.hive.process import figures_of

_LOG = logging.getLogger(__name__)
_EVERY, _PRESSED = 1.0, 0.2
"""The seconds between two checks of p2pd: normally, and while strangers are being disconnected."""
Knows = Callable[[bytes], bool]
"""Returns whether a libp2p id is that of a known peer, which is never disconnected."""


class Watchdog:
    """Monitors one run of p2pd. `knows` returns whether a libp2p id is that of a known peer."""

    def __init__(self, control: Control, pid: int, limits: WatchLimits, knows: Knows) -> None:
        self.disconnected = 0
        """The number of strangers that were disconnected in this run of p2pd."""
        self._control, self._pid, self._knows = control, pid, knows
        self._watch = DaemonWatch(limits, asyncio.get_running_loop().time())
        self._strangers: set[bytes] = set()  # the strangers seen at the last check

    def __repr__(self) -> str:
        return f"<Watchdog of {self._pid}: {self._watch!r}>"

    async def run(self) -> str:
        """Monitor p2pd until it has to be restarted, and return the reason."""
        pause = _EVERY
        while True:
            await asyncio.sleep(pause)
            pause = _EVERY
            figures = figures_of(self._pid)
            if figures is None:
                continue
            advice = self._watch.look(asyncio.get_running_loop().time(), figures)
            if advice.act is Remedy.RESTART:
                return f"{advice.why}; if this load is honest, raise --p2pd-memory"
            if advice.act is Remedy.DISCONNECT:
                await self._disconnect(advice.why)
                pause = _PRESSED

    async def _disconnect(self, why: str) -> None:
        """Disconnect the strangers that were already connected at the last check."""
        try:
            now = {number for number in await self._control.ids() if not self._knows(number)}
            self._watch.came(len(now - self._strangers))
            gone, self._strangers = now & self._strangers, now
            await self._control.disconnect(gone)
        except OSError as error:
            _LOG.debug("strangers cannot be disconnected: %s", error)
            return
        if gone and not self.disconnected:
            _LOG.warning("%s: disconnecting strangers until it takes less again", why)
        self.disconnected += len(gone)
