"""Detects that this machine's clock is wrong, by the dates of the other peers' records.

A peer with a wrong clock refuses the records of all other peers, and they refuse its own. Without
this check it would believe that it is alone: a client would report the swarm as lost, and a storage
peer would call all its shards ready, though they are empty.

One record of another peer with a current date is enough to trust the local clock. So strangers
cannot make a peer distrust its clock with old records while an honest peer is live.
"""

from collections.abc import Iterable
from itertools import islice
from statistics import median

from giaann_p2p.errors import RecordError
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.record import WrongTimeError, prove, unproven

_MOST = 256
"""Maximum number of records to examine, because verifying one signature takes 86 µs."""


def clock_fault(
    records: Iterable[bytes], me: Peer, now: float, swarm_id: bytes, rules: Rules
) -> str:
    """Return how far the local clock is off, and advice; empty if it seems right.

    The clock seems right unless records of other peers contradict it and none fits it.
    """
    ahead: dict[Peer, float] = {}
    for data in islice(records, _MOST):
        try:
            found = unproven(data, now, swarm_id, rules)
            if found.peer != me:
                prove(data, found)  # a forged record must not hide that the clock is wrong
                return ""
        except WrongTimeError as error:
            if error.announcement.peer != me and _is_signed(data, error):
                ahead[error.announcement.peer] = error.ahead
        except RecordError:
            continue
    return _said(list(ahead.values())) if ahead else ""


def _is_signed(data: bytes, error: WrongTimeError) -> bool:
    try:
        prove(data, error.announcement)
    except RecordError:
        return False
    return True


def _said(ahead: list[float]) -> str:
    by = -median(ahead)
    many = "the only other peer" if len(ahead) == 1 else f"all {len(ahead)} other peers"
    return (
        f"this machine's clock is {abs(by):,.0f} s {'ahead of' if by > 0 else 'behind'} that of"
        f" {many}: set it right (`timedatectl set-ntp true` keeps it so), then start again"
    )
