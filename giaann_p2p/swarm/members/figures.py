"""The figures of a swarm that an overview shows, and from which its problems are diagnosed."""

from collections.abc import Sequence

import msgspec

from giaann_p2p.swarm.members.capacity import Filling
from giaann_p2p.swarm.members.health import Health
from giaann_p2p.swarm.members.losses import NONE, Losses
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.record import Load, PeerState, Role


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A live peer in one of its roles, as the overview shows it."""

    peer: Peer
    role: Role
    state: PeerState
    capacity: int
    """Bytes of memory that the peer gives to shards."""
    used: int
    """Bytes of `capacity` in use."""
    ready: int
    """Number of shards that the peer serves."""
    syncing: int
    """Number of shards that the peer is fetching."""
    owns: int
    """Number of shards that placement assigns to the peer; 0 for a compute peer."""
    load: Load
    device: str
    slots: int
    addresses: tuple[str, ...]


class CutFigures(msgspec.Struct, frozen=True, kw_only=True):
    """How many columns are cut by target, in chunks of one size and of larger ones."""

    chunk: int
    """The size: the number of sentences in a chunk."""
    columns: int
    """Number of columns that are cut."""
    parts: int
    """Number of parts of all of them together."""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """A swarm in figures: its live peers, what they hold, and how well shards are replicated."""

    peers: list[Seen]
    silent: list[Peer]
    """Live peers that do not answer; empty if no peer was asked."""
    gone: list[Peer]
    """Storage peers that vanished without leaving properly, and may come back."""
    excluded: dict[Peer, list[int]]
    """Excluded peers, each with the shards that it may not own because its replica is wrong."""
    full: list[Peer]
    """Full storage peers; only peers that own shards, or hold them beside the owners, count."""
    filling: list[Filling]
    """Nearly full storage peers; only peers that own shards, or hold them beside the owners,
    count."""
    closed: int
    """Number of shards that accept no update, because too many of their holders are full."""
    losses: Losses = NONE
    """Content that storage peers remember but that no peer holds any more."""
    cold: int = 0
    """Number of shards that no peer serves but that some peer keeps as a cold copy; these come back
    by themselves."""
    fetched: int = 0
    """Number of shards that no peer serves but that some live peer is fetching."""
    now: float = 0.0
    """Time of this overview, in seconds since 1970."""
    shards: int
    replicas: int
    edition: int = 0
    """Number of the edition that sets the swarm's rules; 0 for the manifest."""
    cut: tuple[CutFigures, ...] = ()
    """How many columns are cut by target, for each chunk size at which more are cut than before."""
    health: Health

    @property
    def storing(self) -> int:
        """The number of storage peers that are live and not silent."""
        there = (one for one in self.peers if one.peer not in self.silent)
        return sum(one.role == "storage" for one in there)


def cut_figures(rules: Rules) -> tuple[CutFigures, ...]:
    """Return how many columns are cut by target, without chunk sizes that cut none anew."""
    parts = [[cut.parts for cut in columns.cuts] for columns in rules.cuts]
    return tuple(
        CutFigures(chunk=size, columns=len(now), parts=sum(now))
        for size, now, before in zip(rules.sizes, parts, [[], *parts], strict=False)
        if now != before
    )


def cut_said(cut: Sequence[CutFigures]) -> str:
    """Return a phrase on the columns that are cut by target; empty if there are none."""
    said = [
        f"{one.columns:,} column{'' if one.columns == 1 else 's'} into {one.parts:,} parts in"
        f" chunks of {one.chunk:,} or more"
        for one in cut
    ]
    return f"cut by target: {', '.join(said)}" if said else ""
