"""A peer as its supervisor sees it: process events and the peer's status reports give its state.

1. A peer is WAITING until it may start (see waves.py), and STARTING until its first status report.
   Then it is READY if it reports that, otherwise RUNNING.
2. A peer is STOPPED while its process is stopped, no matter what it reported.
3. A peer is ENDED as soon as its process has ended; its last report no longer counts.
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
"""Duration of a run, in seconds, from which the backoff starts anew."""


class ProcessState(StrEnum):
    """The state of a peer's process."""

    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    READY = "ready"
    STOPPED = "stopped"
    ENDED = "ended"


class View(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a peer, as clients of the supervisor see it."""

    name: str
    role: str
    state: ProcessState
    told: str
    """The state that the peer itself reports."""
    pid: int
    """The process id; 0 if the peer does not run."""
    code: int | None
    """How the peer ended: its exit code or, negative, the signal that ended it; None if it has not
    ended."""
    seconds: float
    """Seconds since the peer started or, if it has ended, since its end."""
    restarts: int
    """Number of times that the peer was restarted."""
    peer: str
    """The peer's identity; empty until it has reported one."""
    listen: str
    """The address that the peer listens on; empty until it is known."""
    metrics_port: int
    """The port of the peer's metrics; 0 if there is none, or none yet."""
    memory: int = 0
    """Memory of the peer and of all processes that it started, in bytes; 0 if not measured."""


class Peer:
    """A peer in the supervisor: the events of its process determine its state."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.pid = 0
        self.code: int | None = None
        self.status: Status | None = None
        self.paused = False
        self.wanted = True
        """Whether the peer should run; False once a client has asked for its end."""
        self.restarts = 0
        self.again_at = float("inf")
        """When to restart the peer, in seconds since 1970; infinity for never."""
        self._begun = False
        self._since = 0.0
        self.backoff = _BACKOFF
        """Backoff of automatic restarts: each run of less than a minute doubles the pause."""

    def __repr__(self) -> str:
        return f"<Peer {self.known.name}: {self.state}>"

    @property
    def name(self) -> str:
        """The peer's name in this swarm."""
        return self.known.name

    @property
    def alive(self) -> bool:
        """Whether the peer was started and has not ended."""
        return self._begun and self.code is None

    @property
    def is_starting(self) -> bool:
        """Whether the peer was started and has not reported its status yet."""
        return self.state == ProcessState.STARTING

    def age(self, now: float) -> float:
        """Return the seconds since the peer was started."""
        return now - self._since

    @property
    def state(self) -> ProcessState:
        """The present state of the peer's process."""
        if not self._begun:
            return ProcessState.WAITING
        if self.code is not None:
            return ProcessState.ENDED
        if self.paused:
            return ProcessState.STOPPED
        if self.status is None:
            return ProcessState.STARTING
        return ProcessState.READY if self.status.state == READY else ProcessState.RUNNING

    @property
    def listen(self) -> str:
        """The address on which the peer listens, or is to listen."""
        return self.known.listen or LISTEN

    def begin(self, now: float) -> None:
        """Record that the peer's process is being started; `now` is in seconds since 1970."""
        self.pid, self.code, self.status, self.paused, self.wanted = 0, None, None, False, True
        self._begun, self.again_at, self._since = True, float("inf"), now

    def end(self, code: int, now: float) -> None:
        """Record that the peer's process has ended, with an exit code or, negative, by a signal."""
        self.backoff = (self.backoff if now - self._since < _SETTLED else _BACKOFF).failed(now)
        self.pid, self.code, self.paused, self._since = 0, code, False, now

    def hear(self, status: Status | None) -> bool:
        """Record a status report; return whether it is new and from the peer's present process."""
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
        """Return the peer's state for clients; `memory` is in bytes."""
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
    """Return a phrase for an exit code or, negative, for the signal that ended a process."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
