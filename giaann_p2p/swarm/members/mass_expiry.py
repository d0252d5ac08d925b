"""Which records expire now: a limited part of the storage peers within one lifetime.

If many storage peers seem to vanish at once, the DHT is more likely to have failed than they: the
nodes that keep the records are overloaded or unreachable. To give all of these peers up would
move all of their shards, and this load would make further records late. So the directory gives up
the longest silent ones first, and the others only later, unless a sign of life arrives meanwhile.
(Eureka's self-preservation does the same, but keeps the others for ever.)

If they are gone indeed, half of a large swarm is given up after three lifetimes instead of one, and
repairs begin so much later. Reads go on, because a peer that does not answer is in backoff; but an
update waits if most owners of its shard are among the gone.

Newcomers are given up at once and do not count: strangers who announce thousands of peers for a
moment must not make those wait that have been here for longer.
"""

import numpy as np

from giaann_p2p.swarm.members.claims import Claims, Mask
from giaann_p2p.swarm.wire.record import LIFETIME

_MOST_LOST = 1 / 4
"""Maximum part of the storage peers that is given up within one lifetime."""
_FEW = 8
"""Number of storage peers that may be given up at once in a swarm of any size."""
_NEW = 120.0
"""Seconds for which a peer is a newcomer: the time from its first sign of life to its last one."""
_AGAIN = 1.0
"""Seconds until peers that could not be given up yet are considered again."""


def give_up(claims: Claims, now: float) -> Mask:
    """Mark peers as gone whose records have expired; return which rows these are."""
    gone = claims.live & (claims.expires <= now)
    known = claims.holds & (claims.known_for >= _NEW)
    lost = known & (claims.given_up > now - LIFETIME)  # some may have come back
    late = np.flatnonzero(gone & known)
    before = int(np.count_nonzero(known & (claims.live | lost)))
    room = max(0, max(_FEW, int(_MOST_LOST * before)) - int(np.count_nonzero(lost)))
    if len(late) > room:
        longest_silent_first = late[np.argsort(claims.expires[late], kind="stable")]
        gone[longest_silent_first[room:]] = False
    claims.live[gone] = False
    claims.given_up[gone] = now
    return gone


def next_due(claims: Claims, forget: float, now: float) -> float:
    """Return when the next record expires, or has been expired for `forget` seconds."""
    ends = np.where(claims.live, claims.expires, claims.expires + forget)
    is_late = claims.live & (claims.expires <= now)
    return float(np.where(is_late, now + _AGAIN, ends).min())
