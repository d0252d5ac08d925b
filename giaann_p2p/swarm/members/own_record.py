"""A peer's own record: signed anew when it has news, otherwise continued by its next pulse.

1. Any change to the record is news, except to its time of issue. The load is news only when a
   figure has doubled or halved, or became or was zero, because others only use it to choose between
   peers. The memory in use is news when it has changed by an eighth, when the peer becomes nearly
   full or full, and after a minute: while a swarm learns, it changes all the time at each peer.
2. A pulse is due every `PULSE_SECONDS` after the record was issued. A pulse may be shown one step
   early, because posts are not punctual; a peer that posts more often signs a new record. So a
   pulse hardly overstates how long its peer has lived.
3. Each record has a chain of its own, so that no pulse of an earlier record prolongs a later one.
"""

import msgspec

from giaann_p2p.swarm.members.capacity import level
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.pulse import MOST_PULSES, PULSE_SECONDS, joined, pulse_of, seed_of, split
from giaann_p2p.swarm.wire.record import Announcement, Load, signed

_SOME = 8
"""The memory in use is news when it has changed by one part in this number, or more."""
USED_EVERY = 60
"""Seconds after which any change of the memory in use is news."""


class OwnRecord:
    """The record that a peer announces, and its chain of pulses."""

    def __init__(self, identity: Identity, secret: bytes) -> None:
        """Begin without a record; the chains are derived from `secret`, up to 64 random bytes."""
        self._identity, self._secret = identity, secret
        self._said: Announcement | None = None
        self._record, self._number, self._seed = b"", 0, b""

    def __repr__(self) -> str:
        return f"<OwnRecord: {self._said}, pulse {self._number}>"

    def continued(self, said: Announcement, now: float) -> bytes | None:
        """Return the record with its next pulse; None if `said` must be signed instead.

        It must be signed if it has news, if the chain is used up, or if there is no record yet.
        """
        if self._said is None or is_news(self._said, said):
            return None
        due = int(now - self._said.issued) // PULSE_SECONDS
        number = max(due, self._number + 1)
        if number > min(due + 1, MOST_PULSES):
            return None
        self._number = number
        return joined(pulse_of(self._seed, said.peer, number), self._record)

    def signed(self, said: Announcement) -> bytes:
        """Return a new record with this content, and with a new chain."""
        seed = seed_of(self._secret, said.sequence)
        anchor = pulse_of(seed, said.peer, 0).link
        data = signed(self._identity, msgspec.structs.replace(said, anchor=anchor))
        _, self._record = split(data)
        self._said, self._number, self._seed = said, 0, seed
        return data


def is_news(old: Announcement, new: Announcement) -> bool:
    """Return whether an announcement differs so much from the old one that it must be signed."""
    same = msgspec.structs.replace(
        new,
        sequence=old.sequence,
        issued=old.issued,
        load=old.load,
        anchor=old.anchor,
        used=old.used,
    )
    return same != old or _differ(old.load, new.load) or _is_other_use(old, new)


def _is_other_use(old: Announcement, new: Announcement) -> bool:
    """Return whether the memory in use has changed so much, or so long ago, that others need it."""
    if new.used == old.used:
        return False
    is_much = _SOME * abs(new.used - old.used) >= old.used
    is_late = new.issued - old.issued >= USED_EVERY
    levels = (level(one.used, one.capacity) for one in (old, new))
    return is_much or is_late or len({*levels}) > 1


def _differ(old: Load, new: Load) -> bool:
    """Return whether a figure of the load has doubled or halved, or became or was zero."""
    pairs = zip(msgspec.structs.astuple(old), msgspec.structs.astuple(new), strict=True)
    return any(one != other and max(one, other) >= 2 * min(one, other) for one, other in pairs)
