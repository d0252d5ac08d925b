"""A storage peer's options."""

from typing import Annotated

from giaann_p2p.errors import UsageError
from giaann_p2p.machine import check_capacity, memory
from giaann_p2p.swarm.replication.settings import Settings
from giaann_p2p.units import nbytes, rate
from peers.options import Options, told

_LEAST_CAPACITY = 64 << 20


class StorageOptions(Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A storage peer's options."""

    summary = "Hold columns for a swarm until told to leave."

    join: Annotated[
        str,
        told(
            "The swarm's join link, as its founder printed it, or its name (giaann join).", "LINK"
        ),
    ]
    capacity: Annotated[
        str,
        told(
            "Memory to give to the swarm, for example 8GiB. A peer gets its share of the "
            "columns in proportion to it, and refuses updates beyond it.",
            "SIZE",
        ),
    ] = "1GiB"
    force: Annotated[
        bool, told("Announce the given capacity even if this machine has less memory.")
    ] = False
    memory_only: Annotated[
        bool,
        told(
            "Keep columns in memory only; the folder then holds the identity, the manifest and "
            "addresses. An acknowledged update then lives only as long as this process or another "
            "replica."
        ),
    ] = False
    bandwidth: Annotated[
        str,
        told(
            "Limit for fetching whole shards, for example 50MB/s; 0 for no limit. Pushes and reads "
            "do not count.",
            "RATE",
        ),
    ] = "50MB/s"
    remember: Annotated[
        str,
        told(
            "Disk space for the deltas of recent chunks: a liar's chunks can be withdrawn as long "
            "as their deltas are remembered. 0 for none; with --memory-only there is none.",
            "SIZE",
        ),
    ] = "64MiB"
    cold: Annotated[
        str,
        told(
            "Disk space for cold copies: shards that left memory because others own them now,"
            " kept in case those vanish. Shards that only newcomers hold are kept even beyond it.",
            "SIZE",
        ),
    ] = "64GiB"
    cold_days: Annotated[
        float,
        told(
            "Days to keep a cold copy. Shards that only newcomers hold are kept longer.",
            "DAYS",
            ge=0,
        ),
    ] = Settings().cold_days
    renew: Annotated[
        str,
        told(
            "Shards to drop at the start and fetch again: those whose content differs from that of "
            "other owners, as the log says. Give this option at one start only.",
            "3,17",
        ),
    ] = ""
    leave_within: Annotated[
        float,
        told(
            "Seconds that a leaving peer tries to hand over its shards; then it ends anyway, with"
            " exit code 4, and keeps them on its disk. 0 for no limit.",
            "SECONDS",
            ge=0,
        ),
    ] = 600.0
    patience: Annotated[
        float,
        told(
            "Seconds that a shard without a ready replica waits for peers that may come back with "
            "it, before its present owners continue with what they have.",
            "SECONDS",
        ),
    ] = Settings().patience

    def __post_init__(self) -> None:
        if self.capacity_bytes < _LEAST_CAPACITY:
            raise UsageError(f"--capacity must be at least 64MiB; it is {self.capacity}")
        # Raises UsageError for values that cannot be used.
        self.remember_bytes, self.settings(), self.renewed, self.watch

    def check(self) -> None:
        """Raise UsageError if the peer would offer more memory than this machine has."""
        if not self.force:
            check_capacity(self.capacity_bytes, memory())

    def settings(self) -> Settings:
        """Return the settings of the storage peer's decisions, from these options."""
        return Settings(
            bandwidth=rate(self.bandwidth),
            patience=self.patience,
            cold_bytes=nbytes(self.cold),
            cold_days=self.cold_days,
        )

    @property
    def renewed(self) -> list[int]:
        """The shards to drop at the start and fetch again, from the option `renew`."""
        try:
            return [int(number) for number in self.renew.split(",") if number.strip()]
        except ValueError:
            raise UsageError(
                f"--renew must be numbers of shards, such as 3,17; it is {self.renew!r}"
            ) from None

    @property
    def remember_bytes(self) -> int:
        """The option `remember`, in bytes."""
        return nbytes(self.remember)

    @property
    def capacity_bytes(self) -> int:
        """The option `capacity`, in bytes."""
        return nbytes(self.capacity)
