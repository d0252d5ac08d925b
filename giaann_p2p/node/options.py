"""Settings of a peer's asyncio code; `swarm.replication.settings` has those of its decisions."""

from math import inf

import msgspec

from giaann_p2p.errors import UsageError
from giaann_p2p.swarm.wire.record import LIFETIME


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Intervals, timeouts and bounds of a peer's asyncio code; times are in seconds."""

    tick: float = 1.0
    """Seconds between two ticks; at each tick a storage peer reviews its shards and its load."""
    look_every: float = 3.0
    """Seconds between two looks at the DHT board in a small swarm. Less: joins and departures are
    noticed sooner; more: fewer look-ups in the DHT (each look makes one for each role)."""
    look_slowest: float = 4.5
    """Seconds between two looks in a large swarm, which ask many more nodes; from 16 to 24 peers
    the interval grows with their number. Invariant: look_slowest + look_within < grace; otherwise
    slow looks would come too late to count."""
    look_within: float = 5.0
    """Timeout of a look at the DHT board or a post to it, in seconds."""
    grace: float = LIFETIME / 3
    """Seconds for which records go on ageing after the last successful look at the DHT board. Then
    the clock by which they expire stops, because an unreachable board says nothing about the peers.
    Invariant: grace plus a third of a record's lifetime (the interval between two announcements) is
    less than that lifetime."""
    post_every: float = 1.0
    """Minimum seconds between two posts of this peer's own record. Less: other peers learn of its
    changes sooner; more: fewer stores in the DHT."""
    retry: float = 1.0
    """Seconds until a change that the disk refused is tried again."""
    snapshot_retry: float = 60.0
    """Seconds until a failed snapshot is tried again; nothing waits for a snapshot."""
    queue_bytes: int = 64 << 20
    """Bytes of updates that may wait for the store; at this bound a push is refused as busy."""
    queue_deeds: int = 4096
    """Number of changes that may wait for the store; at this bound a push is refused as busy."""
    queue_seconds: float = 1.5
    """Seconds of work that may wait for the store, estimated from recent writes; at this bound a
    push is refused as busy. Keep it well below the pushers' timeout of 4 s: writing an update
    whose pusher has given up is wasted work, because it is pushed again."""
    queue_anyway: int = 64
    """Number of waiting updates below which `queue_seconds` is ignored, unless they reach
    `queue_bytes_anyway`. A short queue is made durable as one group, so the estimated time of a
    single update predicts little about it."""
    queue_bytes_anyway: int = 4 << 20
    """Bytes of waiting updates below which `queue_seconds` is ignored, unless their number reaches
    `queue_anyway`."""
    queue_patience: float = 2.0
    """Seconds for which an update, once its rows are here, may wait for its write to begin; then it
    is refused. It applies when the store is slower than estimated, so keep it above
    `queue_seconds`. Keep it, plus `group_seconds`, plus a second on the network, below the pushers'
    timeout of a small push, 4 s."""
    group_seconds: float = 0.5
    """Target duration of writing one group of updates, in seconds; half of it is for unpacking.
    Less: an update is acknowledged sooner under load; more: fewer waits for the disk."""
    group_bytes: int = 8 << 20
    """Bytes of updates that are made durable as one group. More: fewer waits for the disk; less: an
    update waits less for the others of its group."""
    group_connections: int = 1 << 17
    """Connections in the whole shards that are made durable as one group. More: fewer waits for the
    disk; less: concurrent reads wait less (a few hundredths of a second at the default)."""
    threads: int = 2
    """Number of threads that answer the requests that take too long for the event loop."""
    waiting: int = 128
    """Number of requests that may wait for an answering thread; a further one is refused as
    busy."""
    waiting_of_peer: int = 40
    """Number of one peer's requests that may wait for an answering thread; a further one is refused
    as busy. Less: no peer can monopolise the threads; more: fewer refusals for a peer with many
    requests at once. Keep it above `Settings.transfers`, because a joining peer asks for that many
    shards at once."""
    inline_neurons: int = 16
    """Maximum number of rows in a read that is answered in the event loop. So few rows take no
    longer than handing the read to a thread. The bound `inline_connections` applies, too."""
    inline_connections: int = 4096
    """Maximum number of connections in the rows of a read that is answered in the event loop: about
    two milliseconds of work. The bound `inline_neurons` applies, too."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if not 0 < (value := getattr(self, name)) < inf:
                raise UsageError(f"options: {name} must be more than 0, and finite; it is {value}")
        if self.look_slowest + self.look_within >= self.grace:
            raise UsageError(
                f"options: look_slowest plus look_within must be less than grace, {self.grace} s; "
                f"they are {self.look_slowest} and {self.look_within} s"
            )
        if self.grace + LIFETIME / 3 >= LIFETIME:
            raise UsageError(
                f"options: grace plus a third of a record's lifetime must be less than that"
                f" lifetime, {LIFETIME} s; grace is {self.grace} s"
            )
