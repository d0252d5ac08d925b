"""Resource limits of the p2pd process, and the remedies when p2pd exceeds them.

libp2p's daemon bounds nothing by itself, and answers anybody that can dial it. So its memory, open
files and processor time are monitored:

1. Over a limit, strangers are disconnected at once: peers that this peer has neither dialled nor
   serves. Most of the resources that they took in p2pd are freed with their connections.
2. Far over the memory limit, p2pd is restarted at once.
3. When an excess lasts, p2pd is restarted as well. After a flood of strangers this happens soon,
   because a flood leaves addresses in p2pd that only a restart removes. Without a flood the load is
   probably honest, so an hour must have passed since p2pd's last start.
4. p2pd counts as hung, and is restarted, when it is busy for long and moves next to no bytes.
"""

from enum import Enum

import msgspec

from giaann_p2p.errors import UsageError


class WatchLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The resources that p2pd may use."""

    memory: int = 150_000_000
    """The most resident memory in bytes. Lower: floods cost less, and honest load is cut off
    sooner. p2pd starts with 55 MB, and 500 connections take some 40 MB."""
    descriptors: int = 1280
    """The most open files: one for each connection, and one for each stream to this process."""
    far: int = 3
    """The multiple of the memory limit above which p2pd is restarted at once. Open files have no
    such bound: anybody can hold some thousand sockets half open, and that costs less than a
    restart."""
    busy: float = 0.5
    """The number of cores that p2pd may keep busy before strangers are disconnected."""
    patience: float = 30.0
    """The seconds for which p2pd may exceed a limit, or be busy with nothing, before it is
    restarted."""
    after_flood: float = 60.0
    """The minimum seconds from p2pd's start to a restart for an excess after a flood of
    strangers."""
    otherwise: float = 3600.0
    """The minimum seconds from p2pd's start to a restart for an excess without a flood of
    strangers."""
    flood: int = 32
    """The number of strangers arriving while p2pd exceeds a limit that counts as a flood: honest
    peers are fewer."""
    idle_bytes: int = 100_000
    """The bytes moved per second of processor time below which p2pd counts as busy with nothing.
    Small calls, the workload that moves least, move 2 MB per second."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if getattr(self, name) <= 0:
                raise UsageError(f"p2pd: {name} must be more than 0")


class Figures(msgspec.Struct, frozen=True):
    """The resource use of p2pd at one moment."""

    memory: int
    """The resident memory in bytes."""
    descriptors: int
    """The number of open files."""
    seconds: float
    """The processor time used since p2pd's start, in seconds; it only grows."""
    moved: int
    """The number of bytes read and written since p2pd's start; it only grows."""


class Remedy(Enum):
    """The remedies when p2pd exceeds a limit."""

    NOTHING = "nothing"
    DISCONNECT = "disconnect strangers"
    RESTART = "start it again"


class Advice(msgspec.Struct, frozen=True):
    """The advised remedy, and the reason for it in words."""

    act: Remedy
    why: str = ""


_NOTHING = Advice(Remedy.NOTHING)


class DaemonWatch:
    """Applies the limits to one run of p2pd, from its start."""

    def __init__(self, limits: WatchLimits, now: float) -> None:
        self._limits = limits
        self._since = now
        self._strangers = 0  # strangers that arrived during an excess
        self._over_since: float | None = None  # start of a continuous excess
        self._busy_since: float | None = None  # start of being busy with nothing
        self._last: tuple[float, Figures] | None = None

    def __repr__(self) -> str:
        return f"<DaemonWatch: {self._strangers} strangers, {self._last}>"

    def came(self, strangers: int) -> None:
        """Count the strangers that have arrived since the last disconnect was advised."""
        self._strangers += strangers

    def look(self, now: float, figures: Figures) -> Advice:
        """Return the remedy for p2pd's present resource use."""
        cores, hangs = self._pace(now, figures)
        limits, excess = self._limits, self._excess(figures)
        if figures.memory > limits.far * limits.memory:
            return Advice(Remedy.RESTART, f"p2pd {excess}, far above its limit")
        self._over_since = (self._over_since or now) if excess else None
        if self._over_since is not None and now - self._over_since >= limits.patience:
            flooded = self._strangers >= limits.flood
            if now - self._since >= (limits.after_flood if flooded else limits.otherwise):
                return Advice(
                    Remedy.RESTART, f"p2pd {excess}, above its limits for {limits.patience:g} s"
                )
        self._busy_since = (self._busy_since or now) if hangs else None
        if self._busy_since is not None and now - self._busy_since >= limits.patience:
            return Advice(
                Remedy.RESTART, f"p2pd has been busy for {limits.patience:g} s without moving data"
            )
        if excess:
            return Advice(Remedy.DISCONNECT, f"p2pd {excess}")
        if cores > limits.busy:
            return Advice(Remedy.DISCONNECT, f"p2pd keeps {cores:.1f} cores busy")
        return _NOTHING

    def _excess(self, figures: Figures) -> str:
        if figures.memory > self._limits.memory:
            return f"takes {figures.memory / 1e6:.0f} MB"
        if figures.descriptors > self._limits.descriptors:
            return f"holds {figures.descriptors:,} files open"
        return ""

    def _pace(self, now: float, figures: Figures) -> tuple[float, bool]:
        """Return the cores kept busy since the last call, and whether next to nothing moved."""
        last, self._last = self._last, (now, figures)
        if last is None or now <= last[0]:
            return 0.0, False
        then, before = last
        seconds = figures.seconds - before.seconds
        cores = seconds / (now - then)
        few = figures.moved - before.moved < self._limits.idle_bytes * seconds
        return cores, cores > self._limits.busy and few
