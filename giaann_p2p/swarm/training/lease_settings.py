"""Settings of a coordinator's leases: timeouts, limits, and when a failing chunk is given up."""

import msgspec

from giaann_p2p.errors import UsageError


class LeaseSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of one job's leases. Invariant: 0 < lease <= longest."""

    lease: float = 10.0
    """Seconds without a heartbeat after which a worker's chunk is leased to another worker; a few
    heartbeats long. Shorter: a dead worker is found sooner. Longer: less work is repeated when the
    network stalls."""
    longest: float = 300.0
    """Maximum number of seconds that a worker may keep a chunk, whatever its heartbeats say; at
    least `lease`. It frees the chunks of a worker that hangs but still sends heartbeats."""
    rest: float = 2.0
    """Seconds until a failed chunk is leased again. The pause doubles with each failure; 0 means no
    pause."""
    in_flight: int = 256
    """Maximum number of leases of all workers at a time; it bounds the coordinator's memory."""
    failures: int = 3
    """Number of different workers that must fail on a chunk before it is given up."""
    losses: int = 8
    """Number of different workers that must fall silent or leave while they lease a chunk before it
    is given up, because the chunk might have killed them. It should be well above `failures`,
    because workers die for other reasons, too."""

    def __post_init__(self) -> None:
        if not 0 < self.lease <= self.longest:
            raise UsageError(
                f"0 < lease <= longest must hold; lease is {self.lease}, longest is {self.longest}"
            )
        if self.rest < 0:
            raise UsageError(f"rest must be 0 or more; it is {self.rest}")
        for name in ("in_flight", "failures", "losses"):
            if (value := getattr(self, name)) < 1:
                raise UsageError(f"{name} must be 1 or more; it is {value}")
