"""Decides how many peers start at a time, and when a start no longer makes progress.

Starting a peer costs seconds of processor time. If a hundred started at once, each would take
minutes, and calls between them would time out. So they start in waves: one begins as soon as an
earlier one takes part in the swarm, and while few of them are still settling in. Until a peer is
ready, it connects to all others and takes over shards, and each newcomer gives it more of both.
"""

import os
from collections.abc import Sequence

from giaann_p2p.local.peer import Peer, ProcessState, View

_AT_ONCE = max(8, 4 * (os.cpu_count() or 1))
"""Maximum number of peers that start at a time."""
_OVERTAKEN = 30.0
"""Seconds after which a peer that has not reported no longer keeps others from starting."""
_SETTLING = 2
"""How many times `_AT_ONCE` peers may be on the way to being ready."""
_SETTLED = 45.0
"""Seconds after which a peer that is not ready no longer keeps others from starting. Invariant:
less than `Spec.start_within`, or a start could be given up because peers wait that need not."""
_ON_THE_WAY = ProcessState.STARTING, ProcessState.RUNNING
_STEPS = [ProcessState.WAITING, ProcessState.STARTING, ProcessState.RUNNING, ProcessState.READY]


def next_wave(
    waiting: Sequence[Peer], peers: Sequence[Peer], now: float, at_once: int = _AT_ONCE
) -> list[Peer]:
    """Return those of the `waiting` peers that may start now, in order.

    `peers` are all peers; `now` is in seconds since 1970.
    """
    starting = sum(peer.is_starting and peer.age(now) < _OVERTAKEN for peer in peers)
    settling = sum(peer.state in _ON_THE_WAY and peer.age(now) < _SETTLED for peer in peers)
    return list(waiting[: max(0, min(at_once - starting, _SETTLING * at_once - settling))])


class Progress:
    """Watches whether starting peers make progress: one must reach its next state in time."""

    def __init__(self, within: float, now: float) -> None:
        """Allow `within` seconds for each step, from `now` on, a time of any clock."""
        self._within = within
        self._until = now + within
        self._most = -1

    def ends(self, peers: Sequence[View], now: float) -> bool:
        """Return whether the time for a step is over; `peers` are the current views of all peers.

        A peer that falls back to a state and leaves it again makes no progress.
        """
        steps = sum(_STEPS.index(peer.state) for peer in peers if peer.state in _STEPS)
        if steps > self._most:
            self._most, self._until = steps, now + self._within
        return now > self._until
