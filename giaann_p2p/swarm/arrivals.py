"""Whole shards on their way here: offered, sent in parts within a budget of bytes, taken in.

What is offered has a set of chunks of its own, and may have got some a moment ago. So those that
are lacking here are asked for once more when the set is known, until none of them is kept there any
longer: only such a chunk comes inside the shard alone (see `Fetching`).

What came whole and cannot be taken in, for the store is full, is kept and tried again; meanwhile no
more is asked for. What is turned down for another reason, or too often, is not sent again at once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from giaann_p2p.errors import DamagedError, GiaannError, MessageError
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.codec.parcel import Limits, sizes_of
from giaann_p2p.store.state import Content
from giaann_p2p.store.transfer import Import, Manifest
from giaann_p2p.swarm.actions import Action, Adopt, Apply, Call
from giaann_p2p.swarm.bandwidth import Bandwidth
from giaann_p2p.swarm.comparing import Held, Others
from giaann_p2p.swarm.deeds import Deeds
from giaann_p2p.swarm.deltas import Lack, deltas_of, request, shards_of
from giaann_p2p.swarm.desk import Desk
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.limits import of_part
from giaann_p2p.swarm.messages import AskPart, Message, Offer, Offered, Part, Refused
from giaann_p2p.swarm.replicas import Replicas
from giaann_p2p.swarm.settings import Settings
from giaann_p2p.swarm.strain import Strain

Then = Callable[[Message | None, float], list[Action]]


@dataclass
class _Arrival:
    """A shard that is wanted, or on its way."""

    peer: Peer
    parts: Import | None = None
    """What came, once it was offered."""
    left: int = 0
    """Connections that are still to come, as they were promised."""
    has_deltas: bool = False
    """Nothing that is offered is kept there as a delta and lacking here."""
    content: Content | None = None
    """What all parts come to, once they are there."""
    refused: int = 0
    """How often the store had no room for it."""
    waiting: bool = False
    """For an answer, or for the store."""


_MOST_TRIES = 5
"""Times that a shard is given to a store that has no room for it."""
_REST = 60.0
"""Seconds in which what the store did not take in is not asked for again of the same peer."""


class Arrivals:
    """Some shards at a time; what came of one is kept when its sender fails, for the next."""

    def __init__(
        self,
        settings: Settings,
        replicas: Replicas,
        others: Others,
        held: Held,
        calls: Desk[Message | None, Action],
        deeds: Deeds,
        limits: Limits,
        most: int,
        again: Callable[[Peer, float], None],
        now: float,
    ) -> None:
        self._settings, self._replicas, self._others = settings, replicas, others
        self._held = held
        self._calls, self._deeds, self._limits, self._again = calls, deeds, limits, again
        self._bandwidth = Bandwidth(settings.bandwidth, now)
        self._wanted: dict[int, Peer] = {}
        self._arriving: dict[int, _Arrival] = {}
        self._kept: dict[int, _Arrival] = {}
        self._most = most  # connections of a shard
        self._strain = Strain()
        self._rests: dict[tuple[Peer, int], float] = {}  # until when

    def __len__(self) -> int:
        return len(self._arriving)

    def want(self, peer: Peer, shard: int) -> None:
        """Have a shard sent by a peer, unless it is on its way; behind those wanted before."""
        if shard not in self._arriving:
            self._wanted[shard] = peer

    def due(self, now: float) -> list[Action]:
        """Ask for what is next of each."""
        for begun in (self._arriving, self._kept, self._wanted):
            for shard in [shard for shard in begun if not self._replicas.holds(shard)]:
                del begun[shard]
        if self._strain.rests(now):
            return []
        self._rests = {key: until for key, until in self._rests.items() if now < until}
        while self._wanted and len(self._arriving) < self._settings.transfers:
            shard = next(iter(self._wanted))
            peer = self._wanted.pop(shard)
            if (peer, shard) not in self._rests:
                self._arriving[shard] = _Arrival(peer)
        actions: list[Action] = []
        for shard, arrival in self._arriving.items():
            if not arrival.waiting and self._bandwidth.free(now):
                arrival.waiting = True
                actions.append(self._next(shard, arrival))
        return actions

    def _next(self, shard: int, arrival: _Arrival) -> Action:
        if arrival.parts is None:
            return self._call(arrival, Offer(shard), partial(self._offered, shard, arrival))
        if not arrival.has_deltas:
            lack = Lack(self._lacking(arrival.parts.manifest), [shard])
            then = partial(self._fetched, shard, arrival, lack)
            return self._call(arrival, request(lack, self._replicas), then)
        if arrival.content is not None:
            number = self._deeds.taking([shard], partial(self._adopted, shard, arrival))
            return Adopt(number, arrival.content)
        part = arrival.parts.missing[0]
        then = partial(self._came, shard, arrival, part)
        return self._call(arrival, AskPart(shard, arrival.parts.manifest.digest, part), then)

    def _call(self, arrival: _Arrival, question: Message, then: Then) -> Call:
        number = self._calls.number(then)
        return Call(number, arrival.peer, question, self._settings.call_timeout)

    def _lacking(self, manifest: Manifest) -> Applied:
        """Return the chunks that are offered and not here."""
        here = self._held.sets([manifest.shard]).get(manifest.shard, Applied())
        return Applied.from_bytes(manifest.applied) - here

    def _offered(
        self, shard: int, arrival: _Arrival, answer: Message | None, now: float
    ) -> list[Action]:
        try:
            if not isinstance(answer, Offered):
                raise MessageError("no answer to a wish for a shard")
            manifest = Manifest.from_bytes(answer.manifest)
            if manifest.shard != shard:
                raise MessageError(f"shard {manifest.shard} was offered, not {shard}")
            if manifest.connections > self._most:
                raise MessageError(f"a shard of {manifest.connections} connections")
            self._begin(arrival, manifest)
            _put_together(arrival)
        except (MessageError, DamagedError):
            return self._failed(shard, arrival, answer, now)
        return self._on(shard, arrival, now)

    def _begin(self, arrival: _Arrival, manifest: Manifest) -> None:
        """Go on with what came before, if it is of the same."""
        kept = self._kept.pop(manifest.shard, None)
        if kept and kept.parts and kept.parts.manifest == manifest:
            arrival.parts, arrival.left = kept.parts, kept.left
        else:
            limits = of_part(self._limits, manifest.connections)
            arrival.parts, arrival.left = Import(manifest, limits), manifest.connections

    def _fetched(
        self, shard: int, arrival: _Arrival, lack: Lack, answer: Message | None, now: float
    ) -> list[Action]:
        try:
            updates, _ = deltas_of(answer, lack, self._replicas, self._limits)
        except (MessageError, DamagedError):
            return self._failed(shard, arrival, answer, now)
        self._bandwidth.spent(sum(len(update.parcel) for update in updates))
        if updates:
            self._others.heard(arrival.peer)
            then = partial(self._applied, shard, arrival)
            return [Apply(self._deeds.taking(shards_of(updates), then), updates)]
        arrival.has_deltas = True
        return self._on(shard, arrival, now)

    def _applied(
        self, shard: int, arrival: _Arrival, error: GiaannError | None, now: float
    ) -> list[Action]:
        if error is not None:
            return self._turned_down(shard, arrival, error, now)
        return self._on(shard, arrival, now)

    def _came(
        self, shard: int, arrival: _Arrival, number: int, answer: Message | None, now: float
    ) -> list[Action]:
        try:
            if not isinstance(answer, Part) or arrival.parts is None:
                raise MessageError("no answer to a wish for a part of a shard")
            self._bandwidth.spent(len(answer.parcel))
            size = sizes_of(answer.parcel).connections
            if size > arrival.left:
                raise MessageError("parts of a shard with more connections than were promised")
            arrival.parts.take(number, answer.parcel)
            arrival.left -= size
            _put_together(arrival)
        except (MessageError, DamagedError):
            return self._failed(shard, arrival, answer, now)
        return self._on(shard, arrival, now)

    def _on(self, shard: int, arrival: _Arrival, now: float) -> list[Action]:
        self._others.heard(arrival.peer)
        arrival.waiting = False
        if arrival.parts is not None and not self._lacking(arrival.parts.manifest):
            self._over(shard, arrival)  # all of it came otherwise meanwhile
        return self.due(now)

    def _failed(
        self, shard: int, arrival: _Arrival, answer: Message | None, now: float
    ) -> list[Action]:
        if arrival.parts is not None and arrival.parts.missing:  # else they come to nothing
            self._kept.pop(shard, None)
            self._kept[shard] = arrival
            if len(self._kept) > self._settings.transfers:
                del self._kept[next(iter(self._kept))]
        self._over(shard, arrival)
        if isinstance(answer, Refused):
            self._others.heard(arrival.peer)
        else:
            self._others.suspect(arrival.peer, now)
        return []

    def _adopted(
        self, shard: int, arrival: _Arrival, error: GiaannError | None, now: float
    ) -> list[Action]:
        if error is not None:
            return self._turned_down(shard, arrival, error, now)
        self._strain.told(None, now)
        self._over(shard, arrival)
        self._again(arrival.peer, now)
        return []

    def _turned_down(
        self, shard: int, arrival: _Arrival, error: GiaannError, now: float
    ) -> list[Action]:
        """Go on when the store did not take in what came."""
        arrival.refused += 1
        if self._strain.told(error, now) and arrival.refused < _MOST_TRIES:
            arrival.waiting = False
        else:
            self._over(shard, arrival)
            self._rests[arrival.peer, shard] = now + _REST
        return []

    def _over(self, shard: int, arrival: _Arrival) -> None:
        if self._arriving.get(shard) is arrival:
            del self._arriving[shard]


def _put_together(arrival: _Arrival) -> None:
    """Make the content if all parts are there; DamagedError if they do not come to it."""
    if arrival.parts is None or arrival.parts.missing:
        return
    try:
        arrival.content = arrival.parts.content()
    except OverflowError as error:
        raise DamagedError(f"the parts of a shard add up to too much: {error}") from None
