"""The couriers of one chunk: peers that carry its rows, so that all holders fetch them from there.

The rows of all shards, or of as many as one peer carries, go to one holder, and each holder is told
to fetch its rows from there. The uplink of a volunteer is the bottleneck, so the rows leave this
peer once, not once for each replica. And each holder is told of one courier, not of one for each of
its shards.

1. A courier is not trusted. Rows carry their authors' signatures, and each holder acknowledges its
   own copy to the writer; a courier acknowledges nothing.
2. Only a few holders are told of a new courier at first, and one more for each that it has served.
   So a courier that serves nobody costs a few messages, and none serves too many at once.
3. A courier that failed too many holders is given up, and another peer is sent its rows. After
   `_TRIES` of them, each holder gets its rows from here.
4. If a peer takes long to answer, its rows are sent to another one, too.
"""

from collections.abc import Callable, Iterable
from math import ceil

import numpy as np

from giaann_p2p.store.layout import Shards, among
from giaann_p2p.swarm.wire.identity import Peer

_TRIES = 3
"""Number of peers that may fail as couriers of a chunk, or of each of its parts, before no other
peer is tried."""
_FIRST, _MOST_AT_ONCE = 4, 64
"""Number of holders that fetch from a courier at the same time: at first, and at most."""
_FAILURES, _PART = 2, 8
"""A courier is given up once it has failed more than `_FAILURES` holders, or one in `_PART` if
there are few, plus one in `_PART` of the holders that it has served: some fail for reasons of their
own."""
_NONE = np.empty(0, np.uint16)


class _Courier:
    """A peer that carries the rows of some shards, and the other holders that fetch from it."""

    def __init__(self, shards: Shards, spare: int) -> None:
        self.shards, self._spare = shards, spare
        self.asked = self.served = 0
        """Number of holders that fetch from the courier now, and that it has served so far."""
        self.failed: set[Peer] = set()

    @property
    def free(self) -> int:
        """Number of further holders that may be told now to fetch from the courier."""
        return max(0, min(_FIRST + self.served, _MOST_AT_ONCE) - self.asked)

    @property
    def is_useless(self) -> bool:
        """Whether the courier has failed too many holders."""
        return len(self.failed) > self._spare + ceil(self.served / _PART)


class Couriers:
    """The couriers of one chunk, and the holders that wait for them."""

    def __init__(self, shards: Shards = _NONE, holders: int = 0) -> None:
        """Begin with the shards whose rows couriers carry to this number of `holders`."""
        self._spare = min(_FAILURES, holders // _PART)
        self.left = shards
        """The shards whose rows have yet to be sent to a courier."""
        self._sent: dict[Peer, Shards] = {}  # shards whose rows are on their way to a peer
        self._until = 0.0  # time until which that peer is waited for
        self._late: dict[Peer, Shards] = {}  # the same for peers that answer too late
        self._of: dict[Peer, _Courier] = {}
        self._tried: set[Peer] = set()
        self._unlucky: set[Peer] = set()  # holders that any courier has failed
        self._failures = 0
        self._queue: dict[Peer, None] = {}
        """The holders that wait for a courier, in order."""

    def __repr__(self) -> str:
        return f"<Couriers: {len(self._of)}, {len(self._queue)} holders wait>"

    def next_of(
        self, peers: Iterable[Peer], may: Callable[[Peer], bool], now: float
    ) -> Peer | None:
        """Return which of some peers to send rows to now; None if no rows are to be sent now.

        `may`: whether a peer may become a courier now. If none may, no other courier is tried.
        """
        if self._sent and now >= self._until:
            self._late |= self._sent
            for peer in [*self._sent]:
                self._failed(self._sent.pop(peer))
        if self._sent or not len(self.left):
            return None
        found = next((peer for peer in peers if peer not in self._tried and may(peer)), None)
        if found is None:
            self.left = _NONE
        return found

    def sent(self, peer: Peer, shards: Shards, until: float) -> None:
        """Record that the rows of some shards in `left` are on their way to a peer."""
        self._tried.add(peer)
        self._sent, self._until = {peer: shards}, until
        self.left = self.left[~among(self.left, shards)]

    def accepted(self, peer: Peer) -> None:
        """Record that a peer that rows were sent to carries them."""
        shards = self._late.pop(peer) if peer in self._late else self._sent.pop(peer)
        self._of[peer] = _Courier(shards, self._spare)
        self.left = self.left[~among(self.left, shards)]
        self._queue = {peer: None, **self._queue}  # it can serve itself at once

    def declined(self, peer: Peer) -> None:
        """Record that a peer that rows were sent to has refused them, or has not answered."""
        if peer in self._sent:
            self._failed(self._sent.pop(peer))

    def way(
        self, peer: Peer, shards: Shards, may: Callable[[Peer], bool]
    ) -> tuple[list[tuple[Peer, Shards]], Shards]:
        """Return which shards a holder should fetch now, by courier, and which have no courier.

        `may`: whether the holder may be told of a courier. Shards that wait for a courier are in
        neither result, and the holder is queued.
        """
        ways = list[tuple[Peer, Shards]]()
        self._queue.pop(peer, None)
        for courier, one in self._of.items():
            carried = among(shards, one.shards)
            if carried.any() and may(courier):
                if one.free:
                    ways.append((courier, shards[carried]))
                else:
                    self._queue[peer] = None
                shards = shards[~carried]
        waiting = among(shards, self.left)
        for sent in self._sent.values():
            waiting |= among(shards, sent)
        if waiting.any():
            self._queue[peer] = None
        return ways, shards[~waiting]

    def asks(self, courier: Peer, holder: Peer) -> None:
        """Record that a holder was told to fetch from a courier, which may be the holder itself."""
        if courier in self._of and courier != holder:
            self._of[courier].asked += 1

    def asked_of(self, courier: Peer) -> int:
        """Return the number of holders that fetch from a peer now, if it is a courier; else 0."""
        return self._of[courier].asked if courier in self._of else 0

    def answered(self, courier: Peer, holder: Peer, served: bool) -> None:
        """Record the answer of a holder that was told to fetch; `served` if it got all rows."""
        if courier in self._of and courier != holder:
            self._of[courier].asked -= 1
            self._of[courier].served += served

    def has(self, courier: Peer) -> bool:
        """Return whether a peer carries rows of the chunk, and was not given up."""
        return courier in self._of

    def blamed(self, courier: Peer, holder: Peer) -> set[Peer]:
        """Record that a courier failed a holder; return the holders whose failures are its fault.

        There are none until the courier has failed too many holders; then it is given up. A holder
        that fails with one courier after another is at fault itself.
        """
        one = self._of.get(courier)
        if one is None:
            return {holder} if courier in self._tried else set()
        if holder in self._unlucky:
            return set()
        self._unlucky.add(holder)
        one.failed.add(holder)
        if not one.is_useless:
            return set()
        self._give_up(courier)
        return one.failed

    def give_up_unless(self, serves: Callable[[Peer], bool]) -> None:
        """Give up the couriers for which `serves` is false."""
        for courier in [courier for courier in self._of if not serves(courier)]:
            self._give_up(courier)

    @property
    def waiting(self) -> list[Peer]:
        """The first waiting holders: as many as may now be told of a courier."""
        if not len(self.left) and not self._sent and not self._of:
            return list(self._queue)
        return list(self._queue)[: sum(one.free for one in self._of.values())]

    def _give_up(self, courier: Peer) -> None:
        self._failed(self._of.pop(courier).shards)

    def _failed(self, shards: Shards) -> None:
        self._failures += 1
        again = self._failures < _TRIES * (1 + len(self._of))  # more, if the rows have many parts
        self.left = np.union1d(self.left, shards) if again else _NONE
