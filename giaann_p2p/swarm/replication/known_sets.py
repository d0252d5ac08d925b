"""The largest known set of each shard (a high watermark), so that a loss of data is detected.

A swarm whose owners vanished serves empty shards just like full ones. So each peer remembers which
chunks its ready shards had. Sets only grow: if all replicas of a shard together lack one of those
chunks, it is lost. A loss is announced (`Announcement.missing`) and shown by `status` and `fsck`,
until the chunks are back, or for `KEEPS` seconds.

The sets are written to the store periodically, because all peers may restart at once. The loss of
a chunk that was learned after the last note before a restart goes undetected.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, NamedTuple

import msgspec
import numpy as np

from giaann_p2p.errors import DamagedError, MessageError, UsageError
from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.wire.actions import Lost, Note

DAY = 24 * 3600.0
KEEPS = 30 * DAY
NOTHING = Lost(np.empty(0, np.uint16), 0, 0.0)
NOTE = "known"
"""The name of this note in the store."""
NOTED_EVERY = 300.0
"""Minimum number of seconds between two notes; a day if no set has grown, because then only the
time when the shards were last seen has changed."""
MOST_BYTES = 1 << 22
"""Maximum size of the sets in a note, in bytes. Beyond it, the sets of the fewest shards are left
out. Usually all shards of a peer have the same set, which is written once."""
_Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 40)]
_Noted = list[tuple[bytes, list[tuple[_Count, _Count, _Count]]]]
"""A note: each set, with the shards that had it, their connections, and when each was last seen."""


class Was(NamedTuple):
    """Content of a shard when it was last seen ready here, at time `seen`."""

    chunks: Applied
    connections: int
    seen: float


class KnownSets:
    """The watermark of each shard. Sets are shared with the store, so this takes little memory."""

    def __init__(self) -> None:
        self._was: dict[int, Was] = {}
        self.missing = NOTHING
        self.changes = 0
        """Number of changes of `missing` so far."""
        self._has_grown = False  # whether any set has grown since the last note
        self._noted_at: float | None = None  # time of the last note, or of the first call of `note`

    def __repr__(self) -> str:
        return f"<KnownSets: {len(self._was)} shards, {len(self.missing.shards)} of them missing>"

    def saw(self, shard: int, chunks: Applied, connections: int, now: float) -> None:
        """Record the set of a shard that is ready here, unless the set lacks known chunks."""
        was = self._was.get(shard)
        if chunks and (was is None or was.chunks <= chunks):
            self._has_grown |= was is None or not chunks <= was.chunks
            self._was[shard] = Was(chunks, connections, now)

    def compare(self, found: Mapping[int, Iterable[Applied]], now: float) -> None:
        """Update `missing` from the existing sets of some shards; other shards are not judged."""
        for shard in [n for n, was in self._was.items() if now - was.seen > KEEPS]:
            del self._was[shard]
        lost = [n for n, sets in found.items() if n in self._was and not self._has(n, sets)]
        if lost != self.missing.shards.tolist():
            self.missing = self._lost(sorted(lost))
            self.changes += 1

    def of(self) -> Iterable[int]:
        """Return the shards with a known set."""
        return self._was.keys()

    def note(self, now: float) -> list[Note]:
        """Return all known sets as a note for the store, if a note is due."""
        if not self._was:
            return []
        if self._noted_at is None:
            self._noted_at = now
        if now - self._noted_at < (NOTED_EVERY if self._has_grown else DAY):
            return []
        self._has_grown, self._noted_at = False, now
        return [Note(NOTE, self.packed())]

    def packed(self) -> bytes:
        """Return the known sets as bytes, to survive a restart."""
        alike: dict[bytes, list[int]] = {}
        for shard, was in sorted(self._was.items()):
            alike.setdefault(was.chunks.digest, []).append(shard)
        found: _Noted = []
        left = MOST_BYTES
        for shards in sorted(alike.values(), key=len, reverse=True):
            chunks = self._was[shards[0]].chunks.to_bytes()
            if len(chunks) <= left:
                left -= len(chunks)
                of = [(n, self._was[n].connections, int(self._was[n].seen)) for n in shards]
                found.append((chunks, of))
        return msgspec.msgpack.encode(found)

    def restore(self, data: bytes, shards: int, now: float) -> None:
        """Restore what `packed` returned in an earlier run; UsageError if it cannot be read."""
        for chunks, of in _unpacked(data):
            for shard, connections, seen in of:
                if shard < shards:
                    self._was[shard] = Was(chunks, connections, min(float(seen), now))

    def _has(self, shard: int, sets: Iterable[Applied]) -> bool:
        left = self._was[shard].chunks
        for chunks in sets:
            if left <= chunks:  # the common case
                return True
            left = left - chunks
        return not left

    def _lost(self, shards: list[int]) -> Lost:
        if not shards:
            return NOTHING
        was = [self._was[shard] for shard in shards]
        connections = sum(one.connections for one in was)
        return Lost(np.array(shards, np.uint16), connections, max(one.seen for one in was))


def _unpacked(data: bytes) -> list[tuple[Applied, list[tuple[int, int, int]]]]:
    try:
        found = msgspec.msgpack.decode(data, type=_Noted)
        return [(Applied.received(chunks), of) for chunks, of in found]
    except (msgspec.MsgspecError, DamagedError, MessageError, RecursionError) as error:
        raise UsageError(f"the note of what was known cannot be read: {error}") from None
