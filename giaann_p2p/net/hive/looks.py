"""What a peer's looks ask for: mostly new records alone, and signs of life as rarely as can be.

1. In a small swarm each look asks for the news of some seconds: new records, and a bare pulse of
   each peer. That takes no more questions than new records alone, and shows soonest who is lost.
2. In a swarm of more than `FEW` peers most looks ask for new records only. Every `_ROUND_AFTER`
   seconds comes a *round*: the pulses of all, from one node for each place, as batches.
3. Work by exception: a live peer that ought to have shown a sign of life by the last round, but has
   not, is asked for further. First comes a look for new records, because a peer whose record was
   just replaced has no pulse; then its place's pulses are asked for at two more nodes, then at all
   near ones, as bare pulses, which begin like no others. These looks come soon after each other, so
   no node that lies or lags makes a live peer expire, and at rest they cost nothing.
4. A place with a record that is not known, though others have been for long, is read whole, at one
   node.
"""

import math
from collections.abc import Callable, Collection, Sequence

from giaann_p2p.net.hive.shelf import ALL, BOTH, PULSES, news_key
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.record import LIFETIME, bucket_of

REPLICAS = 5
"""The number of nodes that keep a copy of a record."""
FEW = 256
"""The most live peers of a small swarm. More: lost peers are noticed sooner in larger swarms, but
a look brings 64 bytes for each peer."""
ASKED = 2
"""The number of nodes that a look asks for each place's new records."""
_NEWS = 12.0
"""The minimum seconds of news that a look asks for in a small swarm: more than the time between two
pulses of a peer, so that each look brings a pulse of each peer, whichever nodes it asks."""
_OVERLAP = 2.0
"""The seconds by which the news that a look asks for overlaps with those of the last look."""
_SLACK = 1.0
"""The seconds by which a sign of life may be late before its peer counts as overdue."""
_ROUND_AFTER = LIFETIME / 3 + _SLACK
"""The minimum seconds between two rounds. In this time each peer shows a new sign of life, so a
round without one makes its peer overdue. More: fewer bytes, but lost peers are noticed later.
Invariant: with a third of a lifetime, in which a peer may show nothing new, and with the time of
five looks, it is less than a lifetime, so that exceptions are asked for in time."""
_FURTHER = 30
"""The seconds of news that are asked for at all nodes of a place at last: a record's lifetime."""
_TWICE, _ALL_NEAR = 2, 3
"""After how many looks that missed a peer two further nodes, and all near ones, are asked."""


class Looks:
    """What the looks for one role have brought so far, and what the next one has to ask for."""

    def __init__(self, places: Sequence[bytes]) -> None:
        """Begin with a look for all records; `places` are the keys of the buckets in order."""
        self._places = places
        self._looked: float | None = None  # when the last look that was answered began
        self._round = -math.inf  # the same for the last one that asked for all pulses
        self._next_round = -math.inf
        self._live, self._complete = 0, True
        self._missed = dict[Peer, int]()  # the number of looks in a row that missed each peer
        self._strange: Collection[int] = ()

    def __repr__(self) -> str:
        return f"<Looks: {self._live:,} live peers, {len(self._missed)} missed>"

    def news(self, now: float) -> int:
        """Return what a look asks of `ASKED` nodes for each place, as the last byte of its keys."""
        if self._looked is None:
            return ALL
        seconds = now - self._looked + _OVERLAP
        if self._live <= FEW:
            seconds = max(seconds, _NEWS)
        asked = min(math.ceil(seconds), ALL)
        return BOTH if asked == PULSES else asked

    def further(self, now: float) -> dict[bytes, int]:
        """Return the keys that a look asks for besides, and of how many nodes each."""
        asked = dict[bytes, int]()
        if self._looked is None:  # all records are asked for
            return asked
        if self._has_round(now):
            asked = {news_key(place, PULSES): 1 for place in self._places}
        for peer, times in sorted(self._missed.items(), key=lambda item: item[1]):
            place = self._places[bucket_of(peer)]
            if times == _TWICE:
                asked[news_key(place, PULSES)] = 2
            elif times == _ALL_NEAR:
                asked[news_key(place, _FURTHER)] = REPLICAS
        return asked | {self._places[bucket]: 1 for bucket in self._strange}

    def looked(self, began: float, ended: float, *, complete: bool) -> None:
        """Note that a look was answered; `complete`: it came to ask all that it was to ask.

        A complete round counts even if some nodes did not answer. Else one silent node could put it
        off for ever; this way the peers that it would have shown become exceptions.
        """
        self._complete = complete
        if self.news(began) >= BOTH or (complete and self._has_round(began)):
            self._round, self._next_round = began, ended + _ROUND_AFTER
            self._missed = {}  # by the round before
        self._looked = began

    def missed(
        self,
        live: int,
        overdue: Callable[[float], Collection[Peer]],
        strange: Collection[int],
    ) -> bool:
        """Note what the last look left open; return whether the next one should come soon.

        `live` peers are known. `overdue` returns those whose next sign of life was due by a time.
        `strange` are the buckets with records that are not known.
        """
        self._live, before = live, self._missed
        late = overdue(self._round - _SLACK) if live > FEW else ()
        self._missed = {peer: before.get(peer, 0) + self._complete for peer in late}
        self._strange = [bucket for bucket in strange if bucket < len(self._places)]
        return any(times <= _ALL_NEAR for times in self._missed.values())

    def _has_round(self, now: float) -> bool:
        return self.news(now) < BOTH and now >= self._next_round
