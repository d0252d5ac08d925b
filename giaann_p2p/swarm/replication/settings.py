"""The settings of a storage peer. Times are in seconds unless a field states another unit."""

from math import isfinite

import msgspec

from giaann_p2p.errors import UsageError

_RATES = (
    "standing_sentences",
    "standing_jobs",
    "newcomer_sentences",
    "newcomer_jobs",
    "newcomers_sentences",
    "newcomers_jobs",
)


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One storage peer's settings. Times are in seconds unless a field states another unit."""

    compare_every: float = 5.0
    """Interval in seconds at which two holders of a shard compare which chunks they have
    (anti-entropy). Shorter: a replica that missed an update gets it sooner. Longer: fewer messages
    (one per pair of peers, whatever the number of shards)."""
    calm_every: float = 30.0
    """The same interval after `calm_after` seconds in which no chunks changed here, the holders of
    the shards stayed the same, and no peer showed other chunks. At least `compare_every`."""
    calm_after: float = 60.0
    """Seconds without a change after which holders compare less often."""
    hurry_every: float = 1.0
    """Interval in seconds between two comparisons of a shard's holders while this peer is catching
    up on a shard, or hands one over and has kept it for `linger` seconds; at most `compare_every`.
    """
    call_timeout: float = 4.0
    """Timeout of a call in seconds; a peer that has not answered by then is treated as silent."""
    word_counts: float = 12.0
    """Seconds for which a peer's report counts as recent; more than twice `compare_every`."""
    linger: float = 30.0
    """Minimum time in seconds for which a peer keeps a shard that it no longer owns. It must be
    more than `word_counts`, or two peers might drop a shard at the same time, each relying on the
    other."""
    patience: float = 20.0
    """Seconds for which a shard without a ready replica waits for one to come back, before a quorum
    of its owners makes it ready with the chunks that they have. The time counts from the first
    lookup of the directory, because a peer that has not looked it up knows no other peers; and from
    when a peer begins to hold the shard."""
    offer: float = 10.0
    """Seconds for which a shard with too few ready replicas waits for its owners, before peers that
    keep a cold copy of the shard load that copy into memory again. Longer: fewer needless loads
    after an outage. Shorter: a shard whose owners vanished is served again sooner."""
    cold_bytes: int = 64 << 30
    """Maximum size of all cold copies on the disk, in bytes; a connection takes 1.6 bytes. A copy
    is kept beyond this limit as long as fewer than a quorum of keepers have its shard ready."""
    cold_days: float = 30.0
    """Days for which a cold copy is kept; longer while fewer than a quorum of keepers have its
    shard ready."""
    standing: float = 24 * 3600.0
    """Seconds for which a peer must have been seen before it has standing for certain; a young
    swarm requires less (see `Standing`)."""
    founding: float = 600.0
    """Seconds from the start of a swarm during which all its peers may teach at the full rate."""
    release_every: float = 30.0
    """Interval in seconds between two releases of the deltas that every replica has."""
    audit_every: float = 60.0
    """Interval in seconds at which owners audit each other (see `replica_audit`). An audit takes up
    to one second of CPU at the auditor and at each audited peer. Longer: wrong or missing rows are
    found later."""
    transfers: int = 32
    """Maximum number of shards that download at the same time. More: a peer that joins waits less
    for the network. Fewer: fewer requests queue at the senders."""
    under_way: int = 1 << 19
    """Maximum number of connections in the shards that download at the same time, estimated from
    the size of the last shard. Sending this many takes a sender 1/8 second of work, on a busy
    machine ten times as long, which must stay well below `call_timeout`."""
    bandwidth: float = 50e6
    """Maximum rate of shard downloads, in bytes per second; 0 for no limit."""

    standing_sentences: float = 61_440.0
    """Sentences per minute that an author with standing may push to this peer (see `push_budget`).
    More: larger compute peers are not slowed. Less: an author that turns bad does less harm before
    it is noticed."""
    standing_jobs: float = 600.0
    """New jobs per minute that an author with standing may push to this peer; a shard has room for
    some 32,000 jobs in all."""
    newcomer_sentences: float = 960.0
    """Sentences per minute that an author without standing may push to this peer. More: a newcomer
    helps sooner. Less: a stranger's poison weighs less beside what others teach."""
    newcomer_jobs: float = 4.0
    """New jobs per minute that an author without standing may push to this peer."""
    newcomers_sentences: float = 1_920.0
    """Sentences per minute that all newcomers together may push to this peer, however many they
    are."""
    newcomers_jobs: float = 12.0
    """New jobs per minute that all newcomers together may push to this peer."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:  # NaN would pass every comparison below
            if not isfinite(value := getattr(self, name)):
                raise UsageError(f"{name} must be a number; it is {value}")
        if self.word_counts <= 2 * self.compare_every:
            raise UsageError("word_counts must be more than twice compare_every")
        if self.linger <= self.word_counts:
            raise UsageError("linger must be more than word_counts")
        if self.calm_every < self.compare_every or self.calm_after < 0:
            raise UsageError("calm_every must be compare_every or more, and calm_after 0 or more")
        if self.hurry_every <= 0 or self.hurry_every > self.compare_every:
            raise UsageError("hurry_every must be above 0 and at most compare_every")
        if self.call_timeout <= 0 or self.release_every <= 0 or self.audit_every <= 0:
            raise UsageError("call_timeout, release_every and audit_every must be above 0")
        if min(getattr(self, name) for name in _RATES) <= 0:
            raise UsageError(f"{', '.join(_RATES)} must be above 0")
        if min(self.patience, self.offer, self.standing, self.founding) < 0:
            raise UsageError("patience, offer, standing and founding must not be below 0")
        if self.cold_bytes < 0 or self.cold_days < 0:
            raise UsageError("cold_bytes and cold_days must not be below 0")
        if self.transfers < 1 or self.under_way < 1 or self.bandwidth < 0:
            raise UsageError("transfers and under_way must be 1 or more, and bandwidth not below 0")
