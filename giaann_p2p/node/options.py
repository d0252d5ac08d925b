"""What the shells of peers go by, beside the decisions: see `swarm.settings` for those."""

from math import inf

import msgspec

from giaann_p2p.errors import UsageError
from giaann_p2p.swarm.record import LIFETIME


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See each. Seconds, unless something else is said."""

    tick: float = 1.0
    """How often a peer looks at everything anew."""
    look_every: float = 3.0
    """How often the board is looked at. Less: who comes or goes is known sooner; more: fewer
    look-ups, one for each role and peer."""
    look_within: float = 5.0
    """How long a look at the board, or a post, may take; then it has failed."""
    grace: float = LIFETIME / 3
    """How long after the last look at the board its records still age. From then on time stands
    still for them: that the board is gone says nothing of the peers. With the time between two
    announcements, a third of a record's life, it must come to less than that life."""
    post_every: float = 1.0
    """The least between two posts of the own record, whatever happens. Less: others know sooner
    what is ready here; more: fewer stores."""
    retry: float = 1.0
    """The pause before what the disk refused is tried again."""
    snapshot_retry: float = 60.0
    """The same for a snapshot, which nothing waits for."""
    queue_bytes: int = 64 << 20
    """Bytes of updates that may wait for the store. From here on a push is refused as busy."""
    queue_deeds: int = 4096
    """The same, in updates."""
    queue_seconds: float = 1.5
    """The same, in the seconds that the store will take for them, as it did lately. Well below what
    those wait who push, four seconds: what they have given up is work for nothing, done again."""
    queue_anyway: int = 64
    """Updates that may wait however long the store takes, with `queue_bytes_anyway` at most: they
    are made durable together, and one by one nobody knows how quick that is."""
    queue_bytes_anyway: int = 4 << 20
    """See there."""
    queue_patience: float = 2.0
    """Seconds for which an update may wait in vain, because the store takes longer than it did
    lately; then it is refused after all. More than `queue_seconds`; with `group_seconds`, and a
    second for the way, below what those wait who push."""
    group_seconds: float = 0.5
    """What a group of updates is to take, about: half of it goes into unpacking them. Less: an
    update is acknowledged sooner where much waits; more: fewer waits for the disk."""
    group_bytes: int = 8 << 20
    """Bytes of updates that are made durable at once. More: fewer waits for the disk; less: less
    waiting for the others of the group."""
    group_connections: int = 1 << 17
    """Connections of whole shards that are made durable at once. More: fewer waits for the disk;
    less: who asks the store meanwhile waits less, a few hundredths of a second for this many."""
    threads: int = 2
    """Threads that answer what takes more than a moment."""
    waiting: int = 128
    """Questions that wait for one of them; a further one is refused as busy."""
    waiting_of_peer: int = 40
    """The same, of one peer. Less: nobody keeps the threads from others; more: who asks a lot at
    once is refused more rarely. More than `transfers` of `swarm.settings`: who joins asks for so
    many shards at once."""
    inline_neurons: int = 16
    """A question for so many rows is answered at once, without a thread: it takes about as long
    as handing it over."""
    inline_connections: int = 4096
    """The same, if the rows have no more connections than that: about two milliseconds' work."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if not 0 < (value := getattr(self, name)) < inf:
                raise UsageError(f"options: {name} must be more than 0, and finite; it is {value}")
        if self.grace + LIFETIME / 3 >= LIFETIME:
            raise UsageError(
                f"options: grace and a third of a record's life must come to less than its life,"
                f" {LIFETIME} s; grace is {self.grace} s"
            )
