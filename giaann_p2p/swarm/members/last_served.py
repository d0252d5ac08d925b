"""When storage peers last served anything, as remembered by compute peers.

If all storage peers of a swarm are gone, their records expire within half a minute, or minutes if
they were many, and no peer is left that remembers lost shards (see `KnownSets`). The swarm would
then look like one that has just started. So each compute peer remembers, for as long as it runs,
when a storage peer last served a shard. While none does, the peer's record states that time in
`Announcement.missing`, without naming shards. `losses` uses it.
"""

from giaann_p2p.swarm.members.directory import Directory
from giaann_p2p.swarm.wire.record import Missing

_NOTHING = Missing()


class LastServed:
    """One compute peer's memory of when storage peers last served a shard."""

    def __init__(self, directory: Directory) -> None:
        self.missing = _NOTHING
        """The entry for this peer's record; empty while a storage peer serves a shard."""
        self._directory = directory
        self._version: int | None = None  # of the directory at the last look
        self._serves = False  # whether a storage peer served a shard at the last look
        self._seen = 0.0

    def __repr__(self) -> str:
        return f"<LastServed: {'now' if self._serves else f'at {self._seen:.0f}'}>"

    def look(self, now: float) -> bool:
        """Check whether any peer serves shards now; return whether `missing` has changed.

        `now` is the time by which records expire, so a peer that cannot read the directory does not
        mistake that for the end of all storage peers.
        """
        version = self._directory.version(now)
        if version != self._version:
            self._version, self._serves = version, self._does_any_serve(now)
        if self._serves:
            self._seen = now
        before = self.missing
        self.missing = _NOTHING if self._serves else Missing(seen=int(self._seen))
        return self.missing != before

    def _does_any_serve(self, now: float) -> bool:
        live = self._directory.live(now)
        return any(len(self._directory.sets_of(said).ready) for said in live)
