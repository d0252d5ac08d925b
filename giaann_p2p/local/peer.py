"""A peer as its supervisor sees it: its state is derived from process events and status reports.

1. A peer is STARTING from its start until its first status report; then RUNNING, or READY.
2. It is STOPPED while its process is stopped, no matter what it reported.
3. It is ENDED as soon as its process has ended; its last report no longer counts.
"""

from enum import StrEnum
from signal import Signals

import msgspec

from giaann_p2p.backoff import Backoff
from giaann_p2p.local.folder import Known
from giaann_p2p.local.roles import LISTEN
from giaann_p2p.local.status_file import READY, Status

_BACKOFF = Backoff(first=0.5, longest=30.0)
_SETTLED = 60.0


class ProcessState(StrEnum):
    """The state of a peer's process."""

    STARTING = "starting"
    RUNNING = "running"
    READY = "ready"
    STOPPED = "stopped"
    ENDED = "ended"


class View(msgspec.Struct, frozen=True, kw_only=True):
    """A peer's state as clients see it."""

    name: str
    role: str
    state: ProcessState
    told: str
    """The state that the peer itself reports."""
    pid: int
    """The process id; 0 if the peer does not run."""
    code: int | None
    """The result of the last run: an exit code or, negative, a signal; None while the peer has not
    ended."""
    seconds: float
    """The seconds for which the peer has run, or since it ended."""
    restarts: int
    peer: str
    listen: str
    metrics_port: int
    memory: int = 0
    """The memory in bytes, including the processes that the peer started; 0 if it was not
    measured."""


class Peer:
    """A peer and the events of its process."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.pid = 0
        self.code: int | None = None
        self.status: Status | None = None
        self.paused = False
        self.wanted = True
        """Whether the peer should run: no client has asked for its end."""
        self.restarts = 0
        self.again_at = float("inf")
        """The time at which the peer is to be restarted, in seconds since 1970."""
        self._begun = False
        self._since = 0.0
        self.backoff = _BACKOFF
        """The pause before a restart; each run that ends early doubles it."""

    def __repr__(self) -> str:
        return f"<Peer {self.known.name}: {self.state}>"

    @property
    def name(self) -> str:
        """The peer's name in this swarm."""
        return self.known.name

    @property
    def alive(self) -> bool:
        """Whether the peer has started and has not ended."""
        return self._begun and self.code is None

    @property
    def state(self) -> ProcessState:
        """The present state of the peer's process."""
        if self.code is not None:
            return ProcessState.ENDED
        if self.paused:
            return ProcessState.STOPPED
        if self.status is None:
            return ProcessState.STARTING
        return ProcessState.READY if self.status.state == READY else ProcessState.RUNNING

    @property
    def listen(self) -> str:
        """The address that the peer listens on, or will listen on."""
        return self.known.listen or LISTEN

    def begin(self, now: float) -> None:
        """Note that the peer's process is being started."""
        self.pid, self.code, self.status, self.paused, self.wanted = 0, None, None, False, True
        self._begun, self.again_at, self._since = True, float("inf"), now

    def end(self, code: int, now: float) -> None:
        """Note that the peer's process has ended."""
        self.backoff = (self.backoff if now - self._since < _SETTLED else _BACKOFF).failed(now)
        self.pid, self.code, self.paused, self._since = 0, code, False, now

    def hear(self, status: Status | None) -> bool:
        """Take a status report; return whether it is new and from the present process."""
        if status == self.status or status is None or not self.pid or status.pid != self.pid:
            return False
        self.status = status
        self.known = msgspec.structs.replace(
            self.known,
            listen=status.listen or self.known.listen,
            metrics_port=status.metrics_port or self.known.metrics_port,
        )
        return True

    def view(self, now: float, memory: int = 0) -> View:
        """Return the peer's state as clients see it."""
        status = self.status or Status(state="")
        return View(
            name=self.name,
            role=self.known.role,
            state=self.state,
            told=status.state,
            pid=self.pid,
            code=self.code,
            seconds=max(now - self._since, 0.0) if self._begun else 0.0,
            restarts=self.restarts,
            peer=status.peer,
            listen=self.known.listen,
            metrics_port=self.known.metrics_port,
            memory=memory,
        )


def how_ended(code: int) -> str:
    """Describe an exit code in words."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
