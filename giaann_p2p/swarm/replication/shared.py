"""What the parts of a storage peer's decisions share: its surroundings, and what is under way."""

from collections.abc import Iterable
from typing import Protocol

from giaann_p2p.store.applied import Applied
from giaann_p2p.store.cold import ColdRoom
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.replication.bulk_calls import BulkCalls
from giaann_p2p.swarm.replication.delta_checks import DeltaChecks
from giaann_p2p.swarm.replication.peer_reports import PeerReports
from giaann_p2p.swarm.replication.pending_writes import PendingWrites
from giaann_p2p.swarm.replication.replicas import Replicas
from giaann_p2p.swarm.replication.settings import Settings
from giaann_p2p.swarm.replication.shard_fingerprint import Weights
from giaann_p2p.swarm.wire.actions import Action
from giaann_p2p.swarm.wire.messages import Message
from giaann_p2p.swarm.wire.pending import PendingCalls


class Rules(Protocol):
    """The swarm's parameters; see `Manifest`."""

    @property
    def shards(self) -> int:
        """The number of shards."""
        ...

    @property
    def replicas(self) -> int:
        """The number of peers that own each shard."""
        ...

    @property
    def quorum(self) -> int:
        """The number of holders that must have applied an update for it to be committed."""
        ...


class Held(Protocol):
    """Read access to the store; see `Store`."""

    @property
    def cold(self) -> ColdRoom:
        """The cold copies of shards."""
        ...

    def sets(self, shards: Iterable[int]) -> dict[int, Applied]:
        """Return the chunks that each of some shards has applied; omit shards not held here."""
        ...

    def retained_for(self, shard: int) -> Applied:
        """Return the chunks whose deltas for a shard are kept."""
        ...

    def size_of(self, shard: int) -> int:
        """Return the number of connections of a shard."""
        ...


class Shared:
    """The state of one storage peer that more than one part reads or changes."""

    def __init__(
        self,
        settings: Settings,
        rules: Rules,
        replicas: Replicas,
        others: PeersView,
        held: Held,
        delta_checks: DeltaChecks,
        secret: bytes,
        begun: float,
    ) -> None:
        """Begin; `secret` is up to 64 random bytes that only this peer knows."""
        self.settings, self.rules, self.replicas = settings, rules, replicas
        self.others, self.held, self.delta_checks = others, held, delta_checks
        self.secret, self.begun = secret, begun
        self.reports = PeerReports()
        self.calls = PendingCalls[Message | None, Action]()
        self.weighings = PendingCalls[Weights, Action]()
        self.writes = PendingWrites()
        self.bulk = BulkCalls(settings.call_timeout, self.calls)
