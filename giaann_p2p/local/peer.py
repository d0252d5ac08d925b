"""A peer as its supervisor knows it: what it does is derived from what was heard of it.

1. It is STARTING from its beginning until it has told of itself; then RUNNING, or READY.
2. It is STOPPED while its process is, whatever it told.
3. It is ENDED as soon as its process has; what it told no longer counts.
"""

from enum import StrEnum
from signal import Signals

import msgspec

from giaann_p2p.local.folder import Known
from giaann_p2p.local.roles import LISTEN
from giaann_p2p.local.status_file import READY, Status

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_SETTLED = 60.0


class State(StrEnum):
    """What a peer does."""

    STARTING = "starting"
    RUNNING = "running"
    READY = "ready"
    STOPPED = "stopped"
    ENDED = "ended"


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown of a peer."""

    name: str
    role: str
    state: State
    told: str
    """Its own word for what it does."""
    pid: int
    """0 if it does not run."""
    code: int | None
    """What it has ended with: an exit code or, negative, a signal."""
    seconds: float
    """How long it has run, or how long ago it has ended."""
    restarts: int
    peer: str
    listen: str
    metrics_port: int
    memory: int = 0
    """Bytes of its own, with those of the processes that it started; 0 if nobody has looked."""


class Peer:
    """What is known of a peer."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.pid = 0
        self.code: int | None = None
        self.status: Status | None = None
        self.paused = False
        self.wanted = True
        """Nobody has asked for its end."""
        self.restarts = 0
        self.again_at = float("inf")
        """When it is to be started again."""
        self._begun = False
        self._since = 0.0
        self._falls = 0

    def __repr__(self) -> str:
        return f"<Peer {self.known.name}: {self.state}>"

    @property
    def name(self) -> str:
        """What it is called here."""
        return self.known.name

    @property
    def alive(self) -> bool:
        """Whether it has begun, and has not ended."""
        return self._begun and self.code is None

    @property
    def state(self) -> State:
        """What it does."""
        if self.code is not None:
            return State.ENDED
        if self.paused:
            return State.STOPPED
        if self.status is None:
            return State.STARTING
        return State.READY if self.status.state == READY else State.RUNNING

    @property
    def listen(self) -> str:
        """Where it listens, or is to listen."""
        return self.known.listen or LISTEN

    def begin(self, now: float) -> None:
        """Take up that its process is being made."""
        self.pid, self.code, self.status, self.paused, self.wanted = 0, None, None, False, True
        self._begun, self.again_at, self._since = True, float("inf"), now

    def end(self, code: int, now: float) -> None:
        """Take up that its process has ended."""
        self._falls = self._falls + 1 if now - self._since < _SETTLED else 1
        self.pid, self.code, self.paused, self._since = 0, code, False, now

    def pause_before_restart(self) -> float:
        """Return how long it stays away: longer each time, if it does not last."""
        return min(_FIRST_PAUSE * 2.0 ** (self._falls - 1), _LONGEST_PAUSE)

    def hear(self, status: Status | None) -> bool:
        """Take up what it tells; whether something is new. Whoever was before it is not heard."""
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
        """Return what is shown of it."""
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
    """Say what an exit code means."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
