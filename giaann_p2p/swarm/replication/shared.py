"""The state that the parts of a storage peer's decisions share, and its view of swarm and store."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from giaann_p2p.store.applied import Applied
from giaann_p2p.store.cold import Cold
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.replication.bulk_calls import BulkCalls
from giaann_p2p.swarm.replication.delta_checks import DeltaChecks
from giaann_p2p.swarm.replication.peer_reports import PeerReports
from giaann_p2p.swarm.replication.pending_writes import PendingWrites
from giaann_p2p.swarm.replication.replicas import Replicas
from giaann_p2p.swarm.replication.settings import Settings
from giaann_p2p.swarm.replication.shard_fingerprint import ShardFingerprints
from giaann_p2p.swarm.wire.actions import Action
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.pending import PendingCalls


class HeldCold(Protocol):
    """Which shards a peer keeps on its disk; `ColdRoom` implements it."""

    @property
    def copies(self) -> Mapping[int, Cold]:
        """The cold copies by shard."""
        ...

    @property
    def durable(self) -> bool:
        """Whether cold copies can be kept."""
        ...

    @property
    def changes(self) -> int:
        """A counter that grows whenever `copies` changes."""
        ...

    @property
    def nbytes(self) -> int:
        """The size of all cold copies, in bytes."""
        ...


class Held(Protocol):
    """Read access to a peer's store; `Store` implements it."""

    @property
    def cold(self) -> HeldCold:
        """The cold copies in the store."""
        ...

    def sets(self, shards: Iterable[int]) -> dict[int, Applied]:
        """Return the applied chunks by shard, without shards that the store does not hold."""
        ...

    @property
    def retains(self) -> bool:
        """Whether the store retains any delta that is not released yet."""
        ...

    def retained_for(self, shard: int) -> Applied:
        """Return the chunks whose deltas the store retains for a shard."""
        ...

    def size_of(self, shard: int) -> int:
        """Return the number of connections in a shard."""
        ...


class Shared:
    """The state of one storage peer that more than one part reads or changes."""

    def __init__(
        self,
        settings: Settings,
        replicas: Replicas,
        others: PeersView,
        held: Held,
        delta_checks: DeltaChecks,
        secret: bytes,
        begun: float,
        reports: PeerReports | None = None,
    ) -> None:
        """Begin at time `begun`; `secret` is up to 64 random bytes that only this peer knows.

        `reports`: reports of other peers that are known already.
        """
        self.settings, self.replicas = settings, replicas
        self.others, self.held, self.delta_checks = others, held, delta_checks
        self.secret, self.begun = secret, begun
        self.reports = reports or PeerReports()
        self.calls = PendingCalls[Message | None, Action]()
        self.weighings = PendingCalls[ShardFingerprints, Action]()
        self.writes = PendingWrites()
        self.bulk = BulkCalls(settings.call_timeout, self.calls)

    @property
    def rules(self) -> Rules:
        """The swarm's rules now; they may change while the peer runs (see `edition`)."""
        return self.others.rules
