"""The times and sizes by which a storage peer decides. Times are in seconds unless stated."""

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
    """One storage peer's settings; each field states its unit and trade-off."""

    compare_every: float = 5.0
    """Interval at which two holders of a shard compare which chunks they have (anti-entropy).
    Shorter: a replica that missed an update gets it sooner. Longer: fewer messages (one per pair of
    peers, whatever the number of shards)."""
    hurry_every: float = 1.0
    """The interval of `compare_every` while one of the two holders is catching up or handing
    over."""
    call_timeout: float = 4.0
    """Timeout of a call; a peer that has not answered by then is treated as silent."""
    word_counts: float = 12.0
    """Time for which a peer's report counts as recent; more than twice `compare_every`."""
    linger: float = 30.0
    """Minimum time for which a shard is kept once it is no longer wanted here. More than
    `word_counts`, or two peers might drop a shard at the same time, each relying on the other."""
    patience: float = 20.0
    """Time for which a shard without a ready replica waits for one to come back, before a quorum of
    its owners goes on with what they have. It counts from the first lookup of the directory: a peer
    that cannot look it up knows no other peer, and waits."""
    offer: float = 10.0
    """Time for which a shard with too few ready replicas waits for its owners, before peers that
    keep a cold copy of the shard load that copy into memory again. Longer: fewer needless loads
    after an outage. Shorter: shards that newcomers took along are served again sooner."""
    cold_bytes: int = 64 << 30
    """Maximum size of the cold copies on the disk, in bytes. A connection takes 1.6 bytes. Copies
    are kept beyond this limit as long as only newcomers hold their content."""
    cold_days: float = 30.0
    """Days for which a cold copy is kept; longer while only newcomers hold its content."""
    standing: float = 24 * 3600.0
    """Seconds after which a peer has standing at the latest; see `Standing`."""
    founding: float = 600.0
    """Seconds from the start of a swarm in which all its peers are equal; see `Standing`."""
    release_every: float = 30.0
    """Interval at which deltas that every replica has are released."""
    audit_every: float = 60.0
    """Interval at which owners audit each other (see `replica_audit`). An audit takes up to one
    second of CPU at the auditor and at each audited peer. Longer: wrong or missing rows are found
    later."""
    transfers: int = 32
    """Maximum number of shards that download at the same time. More: a join waits less for the
    network. Fewer: fewer requests queue at the senders."""
    under_way: int = 1 << 19
    """Maximum number of connections in the shards that download at the same time, estimated from
    the size of the last shard. A sender works on them for 1/8 second, on a busy machine ten times
    as long: this must stay well below `call_timeout`."""
    bandwidth: float = 50e6
    """Maximum rate of shard downloads, in bytes per second; 0 for no limit."""

    standing_sentences: float = 61_440.0
    """Sentences per minute that an author of standing may push here; see `push_budget`. More:
    larger compute peers are not slowed. Less: an author that turns bad does less harm before it is
    noticed."""
    standing_jobs: float = 600.0
    """New jobs per minute of an author of standing; a shard has room for some 32,000 in all."""
    newcomer_sentences: float = 960.0
    """Sentences per minute of an author without standing. More: a newcomer helps sooner. Less: a
    stranger's poison is weaker beside what others teach."""
    newcomer_jobs: float = 4.0
    """New jobs per minute of an author without standing."""
    newcomers_sentences: float = 1_920.0
    """Sentences per minute of all newcomers together, whatever their number."""
    newcomers_jobs: float = 12.0
    """New jobs per minute of all newcomers together."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:  # NaN would pass every comparison below
            if not isfinite(value := getattr(self, name)):
                raise UsageError(f"{name} must be a number; it is {value}")
        if self.word_counts <= 2 * self.compare_every:
            raise UsageError("word_counts must be more than twice compare_every")
        if self.linger <= self.word_counts:
            raise UsageError("linger must be more than word_counts")
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
