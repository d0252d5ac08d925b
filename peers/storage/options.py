"""What can be set of a storage peer."""

from typing import Annotated

from giaann_p2p.errors import UsageError
from giaann_p2p.swarm.settings import Settings
from giaann_p2p.units import nbytes, rate
from peers.options import Options, told

_LEAST_CAPACITY = 64 << 20


class StorageOptions(Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a storage peer can be told."""

    join: Annotated[str, told("The swarm's join link, as its founder printed it.", "LINK")]
    capacity: Annotated[
        str,
        told(
            "Memory to give to the swarm, as 8GiB. A peer gets its share of the "
            "columns in proportion to it, and refuses more.",
            "SIZE",
        ),
    ] = "1GiB"
    memory_only: Annotated[
        bool,
        told(
            "Keep what is stored in memory alone; the folder has the identity, the manifest and "
            "addresses. What was acknowledged then lives only as long as this process or another "
            "replica."
        ),
    ] = False
    bandwidth: Annotated[
        str,
        told(
            "How much a second may arrive when whole shards are fetched, as 50MB/s; 0 "
            "for as much as there is. Pushes and reads are not counted.",
            "RATE",
        ),
    ] = "50MB/s"
    remember: Annotated[
        str,
        told(
            "Room on the disk for what was learned lately, piece by piece: what a liar taught can "
            "be withdrawn as long as it is remembered. 0 for none; in memory alone there is none.",
            "SIZE",
        ),
    ] = "64MiB"
    renew: Annotated[
        str,
        told(
            "Shards to drop when it begins, and to fetch anew: those of which its log says that "
            "others hold something else. To be given once.",
            "3,17",
        ),
    ] = ""
    leave_within: Annotated[
        float,
        told(
            "Seconds that a peer which is told to leave tries to hand over its shards; then it ends"
            " anyway, with exit code 4, and keeps them on its disk. 0 for as long as it takes.",
            "SECONDS",
            ge=0,
        ),
    ] = 600.0
    patience: Annotated[
        float,
        told(
            "Seconds that a shard which nobody serves waits for peers that may come back with it, "
            "before those that are there go on with what they have.",
            "SECONDS",
        ),
    ] = Settings().patience

    def __post_init__(self) -> None:
        if self.capacity_bytes < _LEAST_CAPACITY:
            raise UsageError(f"capacity must be at least 64MiB; it is {self.capacity}")
        self.remember_bytes, self.settings(), self.renewed  # names what cannot be

    def settings(self) -> Settings:
        """Return what the decisions go by."""
        return Settings(bandwidth=rate(self.bandwidth), patience=self.patience)

    @property
    def renewed(self) -> list[int]:
        """The shards to be dropped first."""
        try:
            return [int(number) for number in self.renew.split(",") if number.strip()]
        except ValueError:
            raise UsageError(f"renew: shards' numbers, as 3,17; it is {self.renew!r}") from None

    @property
    def remember_bytes(self) -> int:
        """The same as a number."""
        return nbytes(self.remember)

    @property
    def capacity_bytes(self) -> int:
        """The same as a number."""
        return nbytes(self.capacity)
