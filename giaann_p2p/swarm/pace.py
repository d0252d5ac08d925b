"""How patient a coordinator is with its workers, and with a chunk that brings trouble."""

import msgspec

from giaann_p2p.errors import UsageError


class Pace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See the module."""

    lease: float = 10.0
    """Seconds of silence after which a chunk is given to another worker: a few heartbeats. Shorter
    finds the dead sooner, longer repeats less where the network stalls."""
    longest: float = 300.0
    """Seconds that a worker may keep a chunk, heartbeats or not; at least a lease. It frees what
    a worker hangs at that still sends heartbeats."""
    rest: float = 2.0
    """Seconds until a chunk that failed is leased again, doubled with each failure; 0: at once."""
    in_flight: int = 256
    """Leases at once, of all workers: bounds what a coordinator has to hold in memory."""
    failures: int = 3
    """Different workers on which a chunk fails before it is given up."""
    losses: int = 8
    """Different workers that fell silent or left with a chunk before it is given up, for it might
    be what kills them. Much more than failures: workers are killed for other reasons, too."""

    def __post_init__(self) -> None:
        if not 0 < self.lease <= self.longest:
            raise UsageError(f"0 < lease <= longest must hold; {self.lease} and {self.longest}")
        if self.rest < 0:
            raise UsageError(f"rest must be 0 or more; it is {self.rest}")
        for name in ("in_flight", "failures", "losses"):
            if (value := getattr(self, name)) < 1:
                raise UsageError(f"{name} must be 1 or more; it is {value}")
