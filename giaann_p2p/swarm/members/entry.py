"""A directory's entry for a peer and role, and how patches and short pulses are expanded by it."""

from collections.abc import Sequence

import msgspec

from giaann_p2p.errors import RecordError
from giaann_p2p.swarm.wire.patch import applied, base_of, is_patch
from giaann_p2p.swarm.wire.pulse import (
    Pulse,
    beginning,
    bucket_in,
    continues,
    joined,
    pulse_in,
)
from giaann_p2p.swarm.wire.record import Announcement

_MOST_BEHIND = 12
"""Maximum number of pulses by which a short pulse may be ahead of the known one. More: a false
pulse costs more hashes. A peer that is further behind gets whole records anyway."""


class VainError(RecordError):
    """A short pulse that continues no record's chain, although checking it cost hashes."""


class Entry(msgspec.Struct, frozen=True):
    """The newest record of a peer and role, and when it arrived."""

    record: bytes
    """The signed record, without its pulse."""
    id: bytes
    before: bytes
    """The id of the peer's previous record, whose pulses may still be in transit; empty if there
    was none."""
    pulse: Pulse
    announcement: Announcement
    first: float
    """Time at which the first record of the peer arrived."""
    arrived: float
    """Time at which the stored record, or its newest pulse, arrived."""

    @property
    def lived(self) -> int:
        """Latest time at which the peer is proved to be alive, by its own clock."""
        return self.announcement.lived(self.pulse)

    @property
    def next_due(self) -> float:
        """Time by which a live peer shows its next sign of life; there are three in a lifetime."""
        return self.arrived + self.announcement.lifetime / 3


class SignOfLife(msgspec.Struct, frozen=True):
    """A merged record or pulse: its peer is alive, and its announcement may be new."""

    said: Announcement
    is_new: bool
    """Whether the announcement is new; if not, only the pulse is."""


def unfolded(data: bytes, entries: Sequence[Entry]) -> bytes | None:
    """Expand a patch to a record, or a short pulse to a bare one; None if it brings nothing new.

    `entries` are the one or more entries to which `data` may belong. RecordError if a patch is
    malformed, or if a short pulse was hashed but continues no entry's chain.
    """
    if is_patch(data):
        base = entries[0]
        return applied(data, base.record) if base.id == base_of(data) else None
    pulse, tried = pulse_in(data), 0
    for entry in entries:
        is_newest = data.startswith(beginning(bucket_in(data), entry.id))
        if is_newest and 0 < pulse.number - entry.pulse.number <= _MOST_BEHIND:
            if continues(pulse, entry.pulse, entry.announcement.peer):
                return entry.id + joined(pulse, b"")
            tried += 1
    if tried:
        raise VainError(f"pulse: number {pulse.number} continues none of {tried} records")
    return None
