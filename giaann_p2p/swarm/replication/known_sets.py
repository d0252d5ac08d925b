"""The largest set of chunks known of each shard (a high watermark), used to detect lost data.

A swarm whose owners vanished serves empty shards just like full ones. So each peer remembers which
chunks its ready shards had. Sets only grow: if all replicas of a shard together lack one of those
chunks, it is lost. A loss is announced (`Announcement.missing`) and shown by `status` and `fsck`,
until the chunks are back, or for `KEEPS` seconds.

The sets are written to the store periodically, because all peers may restart at once. If a chunk is
learned after the last such note and lost in the restart, the loss goes undetected. Once the number
of shards has doubled, a note states it, because a peer may restart with more shards than it noted.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, NamedTuple

import msgspec
import numpy as np

from giaann_p2p.errors import MessageError, UsageError
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.layout import MOST_SHARDS
from giaann_p2p.swarm.wire.actions import Lost, Note
from giaann_p2p.swarm.wire.shardset import children, is_doubled, recounted

DAY = 24 * 3600.0
KEEPS = 30 * DAY
"""Seconds for which a shard's known chunks are remembered after the shard was last seen ready."""
NOTHING = Lost(np.empty(0, np.uint16), 0, 0.0)
NOTE = "known"
"""The key of the known sets among a store's notes."""
_NOTE = "the note of each shard's known chunks cannot be read"
NOTED_EVERY = 300.0
"""Minimum number of seconds between two notes of the known sets. If no set has grown, it is a day,
because then only the times at which shards were last seen have changed."""
MOST_BYTES = 1 << 22
"""Maximum size of the sets in a note, in bytes. Beyond it, sets that the fewest shards share are
left out. Usually all shards of a peer have the same set, which is written once."""
_Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 40)]
_Noted = list[tuple[bytes, list[tuple[_Count, _Count, _Count]]]]
"""A note: each set of chunks, and for each shard that had it the shard's number, its connections,
and the time at which it was last seen."""


class _Counted(msgspec.Struct):
    """A note that was written after the number of shards doubled."""

    counted: Annotated[int, msgspec.Meta(ge=1, le=MOST_SHARDS)]
    """The number of shards in the swarm."""
    sets: _Noted


class Was(NamedTuple):
    """The content of a shard when it was last seen ready at this peer."""

    chunks: Applied
    connections: int
    seen: float
    """Time at which the shard was last seen ready, in seconds since 1970."""


class KnownSets:
    """The high watermark of each shard: the largest set of chunks that it was seen with.

    The sets are the store's own objects, so they take little memory. `counted` is the number of
    shards in the swarm, or 0 while it is the manifest's.
    """

    def __init__(self, counted: int = 0) -> None:
        self._counted = counted
        self._was: dict[int, Was] = {}
        self.missing = NOTHING
        """The shards with lost chunks, by the last comparison."""
        self.changes = 0
        """Number of times so far that `missing` has changed."""
        self._has_grown = False  # whether any set has grown since the last note
        self._noted_at: float | None = None  # time of the last note, or of the first call of `note`

    def __repr__(self) -> str:
        return f"<KnownSets: {len(self._was)} shards, {len(self.missing.shards)} of them missing>"

    def doubled(self, before: int, shards: int) -> "KnownSets":
        """Return the known sets after a division of `before` shards into `shards`."""
        new = KnownSets(shards)
        new._was, new.changes = _divided(self._was, before, shards), self.changes
        if self.missing is not NOTHING:
            lost = recounted(self.missing.shards, before, shards)
            new.missing, new.changes = self.missing._replace(shards=lost), self.changes + 1
        new._has_grown, new._noted_at = self._has_grown, self._noted_at
        return new

    def saw(self, shard: int, chunks: Applied, connections: int, now: float) -> None:
        """Record the chunks of a shard that is ready here, unless it lacks chunks known before."""
        was = self._was.get(shard)
        if chunks and (was is None or was.chunks <= chunks):
            self._has_grown |= was is None or not chunks <= was.chunks
            self._was[shard] = Was(chunks, connections, now)

    def compare(self, found: Mapping[int, Iterable[Applied]], now: float) -> None:
        """Update `missing`, given the sets of chunks that the replicas of some shards have now.

        A shard that is not in `found` does not count as missing.
        """
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
        """Return a note of all known sets for the store if one is due, else an empty list."""
        if not self._was:
            return []
        if self._noted_at is None:
            self._noted_at = now
        if now - self._noted_at < (NOTED_EVERY if self._has_grown else DAY):
            return []
        self._has_grown, self._noted_at = False, now
        return [Note(NOTE, self.packed())]

    def packed(self) -> bytes:
        """Encode the known sets, to be kept across a restart."""
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
        return msgspec.msgpack.encode(_Counted(self._counted, found) if self._counted else found)

    def restore(self, data: bytes, first: int, shards: int, now: float) -> None:
        """Restore the known sets that `packed` encoded in an earlier run.

        The swarm has `shards` shards now, and had `first` by the manifest. Raises UsageError if the
        sets cannot be read.
        """
        counted, found = _unpacked(data)
        before = counted or first
        if not is_doubled(shards, before):
            raise UsageError(f"{_NOTE}: it counts {before} shards")
        was = {
            shard: Was(chunks, connections, min(float(seen), now))
            for chunks, of in found
            for shard, connections, seen in of
            if shard < before
        }
        self._was.update(_divided(was, before, shards))

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


def _divided(was: Mapping[int, Was], before: int, shards: int) -> dict[int, Was]:
    """Return the known sets of the shards' children, which divide their parent's connections."""
    parts, found = shards // before, dict[int, Was]()
    for shard, one in was.items():
        for at, child in enumerate(children([shard], before, shards)):
            connections = one.connections // parts + (at < one.connections % parts)
            found[child] = one._replace(connections=connections)
    return found


def _unpacked(data: bytes) -> tuple[int, list[tuple[Applied, list[tuple[int, int, int]]]]]:
    """Return a note's number of shards, 0 for the manifest's, and the note's sets of chunks."""
    try:
        note: _Noted | _Counted = msgspec.msgpack.decode(data, type=_Noted | _Counted)
        counted, sets = (note.counted, note.sets) if isinstance(note, _Counted) else (0, note)
        return counted, [(Applied.received(chunks), of) for chunks, of in sets]
    except (msgspec.MsgspecError, MessageError, RecursionError) as error:
        raise UsageError(f"{_NOTE}: {error}") from None
