"""Settings of the shells in `node`; those of decisions are in `swarm.replication.settings`."""

from math import inf

import msgspec

from giaann_p2p.errors import UsageError
from giaann_p2p.swarm.wire.record import LIFETIME


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Intervals, timeouts and bounds of a peer's shells. Seconds, unless another unit is named."""

    tick: float = 1.0
    """Interval between two ticks of a peer's decisions."""
    look_every: float = 3.0
    """Interval between two looks at the DHT board. Less: joins and departures are noticed sooner;
    more: fewer look-ups, one for each role and peer."""
    look_within: float = 5.0
    """Timeout of a look at the DHT board, and of a post."""
    grace: float = LIFETIME / 3
    """Time for which records go on ageing after the last successful look at the DHT board. Then
    their clock stops, because an unreachable board says nothing about the peers. Grace and the
    interval between two announcements, a third of a record's lifetime, must sum to less than that
    lifetime."""
    post_every: float = 1.0
    """Minimum interval between two posts of this peer's own record. Less: others learn sooner what
    is ready here; more: fewer stores in the DHT."""
    retry: float = 1.0
    """Pause before a change that the disk refused is tried again."""
    snapshot_retry: float = 60.0
    """Pause before a failed snapshot is tried again; nothing waits for a snapshot."""
    queue_bytes: int = 64 << 20
    """Bytes of updates that may wait for the store; from here on a push is refused as busy."""
    queue_deeds: int = 4096
    """Number of changes that may wait for the store; from here on a push is refused as busy."""
    queue_seconds: float = 1.5
    """Estimated seconds of work that may wait for the store; from here on a push is refused as
    busy. The estimate comes from recent writes. Well below the pushers' timeout of 4 s: an update
    that its pusher has given up on is wasted work and is pushed again."""
    queue_anyway: int = 64
    """Number of updates that may wait whatever the estimate says, up to `queue_bytes_anyway`. They
    are made durable together, so the time of a single update predicts little about them."""
    queue_bytes_anyway: int = 4 << 20
    """Bytes of updates that may wait whatever the estimate says, up to `queue_anyway` updates."""
    queue_patience: float = 2.0
    """Time for which an update may wait when the store turns out slower than estimated; then it is
    refused. More than `queue_seconds`; together with `group_seconds` and a second on the network it
    is less than the pushers' timeout."""
    group_seconds: float = 0.5
    """Target time for one group of updates; half of it is for unpacking them. Less: an update is
    acknowledged sooner under load; more: fewer waits for the disk."""
    group_bytes: int = 8 << 20
    """Bytes of updates that are made durable at once. More: fewer waits for the disk; less: an
    update waits less for the others of its group."""
    group_connections: int = 1 << 17
    """Connections of whole shards that are made durable at once. More: fewer waits for the disk;
    less: concurrent reads of the store wait less, a few hundredths of a second for this many."""
    threads: int = 2
    """Number of threads that answer requests which take too long for the event loop."""
    waiting: int = 128
    """Number of requests that may wait for one of these threads; a further one is refused as
    busy."""
    waiting_of_peer: int = 40
    """Number of requests of a single peer that may wait; a further one is refused as busy. Less: no
    peer can monopolise the threads; more: a peer with many requests at once is refused less often.
    More than `Settings.transfers`, because a joining peer asks for so many shards at once."""
    inline_neurons: int = 16
    """Maximum number of rows of a read that is answered in the event loop: handing a read to a
    thread takes about as long."""
    inline_connections: int = 4096
    """Maximum number of connections in the rows of a read that is answered in the event loop: about
    two milliseconds of work. Both `inline_` bounds apply."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if not 0 < (value := getattr(self, name)) < inf:
                raise UsageError(f"options: {name} must be more than 0, and finite; it is {value}")
        if self.grace + LIFETIME / 3 >= LIFETIME:
            raise UsageError(
                f"options: grace and a third of a record's life must come to less than its life,"
                f" {LIFETIME} s; grace is {self.grace} s"
            )
