"""Timeouts and limits of a coordinator's leases, and when it gives a failing chunk up."""

import msgspec

from giaann_p2p.errors import UsageError


class LeaseSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of one job's leases. Invariant: 0 < lease <= longest."""

    lease: float = 10.0
    """Seconds of silence after which a chunk is leased to another worker: a few heartbeats.
    Shorter: a dead worker is found sooner. Longer: less work is repeated when the network
    stalls."""
    longest: float = 300.0
    """Seconds that a worker may keep a chunk, whatever its heartbeats say; at least `lease`. This
    frees the chunk of a worker that hangs but still sends heartbeats."""
    rest: float = 2.0
    """Seconds until a failed chunk is leased again, doubled with each failure; 0: at once."""
    in_flight: int = 256
    """Maximum number of leases at a time, of all workers; it bounds the memory of a coordinator."""
    failures: int = 3
    """Number of different workers on which a chunk fails before it is given up."""
    losses: int = 8
    """Number of different workers that fall silent or leave with a chunk before it is given up,
    because the chunk might have killed them. Well above `failures`: workers die for other reasons,
    too."""

    def __post_init__(self) -> None:
        if not 0 < self.lease <= self.longest:
            raise UsageError(f"0 < lease <= longest must hold; {self.lease} and {self.longest}")
        if self.rest < 0:
            raise UsageError(f"rest must be 0 or more; it is {self.rest}")
        for name in ("in_flight", "failures", "losses"):
            if (value := getattr(self, name)) < 1:
                raise UsageError(f"{name} must be 1 or more; it is {value}")
