"""The times and sizes by which a storage peer decides. Seconds, unless something else is said."""

from math import isfinite

import msgspec

from giaann_p2p.errors import UsageError


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See each."""

    compare_every: float = 5.0
    """How often two holders of a shard compare which chunks they have. Shorter: an update that
    missed one of them arrives there sooner; longer: fewer messages (one for each pair of peers,
    whatever the number of shards)."""
    hurry_every: float = 1.0
    """The same, while one of them is catching up or handing over."""
    call_timeout: float = 4.0
    """How long an answer may take before its peer is taken to be silent."""
    word_counts: float = 12.0
    """How long what a peer said counts as said just now; more than twice `compare_every`."""
    linger: float = 30.0
    """How long a shard is kept at least when it is no longer wanted here. More than `word_counts`,
    or two peers might let go of a shard at the same time, each trusting in the other."""
    patience: float = 20.0
    """How long a shard of which nobody has a ready replica waits for one to come back, before a
    quorum of its owners goes on with what they have. It counts from when the directory was looked
    up first: who cannot look it up knows of nobody, and waits."""
    release_every: float = 30.0
    """How often it is asked which deltas everybody has, so that they need not be kept."""
    audit_every: float = 60.0
    """How often owners try each other: see `auditing`. It takes a second of a core, of who tries
    and of each who is tried, or less where shards are small. Longer: what is wrong, or missing, is
    found later."""
    transfers: int = 32
    """How many shards arrive at the same time, at most. More: a join waits less for the network;
    less: fewer questions wait at those who send."""
    under_way: int = 1 << 19
    """Connections of shards that arrive at the same time, by the size of the last one. Who sends
    works on them for an eighth of a second, on a busy machine ten times as long: this is to be well
    below `call_timeout`."""
    bandwidth: float = 50e6
    """Bytes a second that arriving shards may take; 0 for as many as there are."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:  # nan is neither too small nor too large
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
        if self.patience < 0:
            raise UsageError("patience must not be below 0")
        if self.transfers < 1 or self.under_way < 1 or self.bandwidth < 0:
            raise UsageError("transfers and under_way must be 1 or more, and bandwidth not below 0")
