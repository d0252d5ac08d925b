"""Whole shards on their way here: offered, sent in parts within a budget of bytes, taken in.

What is offered has a set of chunks of its own, and may have got some a moment ago. So those that
are lacking here and kept there are asked for as deltas once more when the set is known, until none
of them comes any longer: only such a chunk comes inside the shard alone (see `Fetching`).

Many small shards are on their way at once, few large ones: see `at_once`. Who is asked for more
than it takes on says so: then what it turned away waits until something else has come, and so many
as it does take are on their way from then on. No more is asked of a peer than will come soon (see
`Flow`), as far as the last shard lets expect what the next one has. What came is kept as the bytes
that it was, and unpacked by whoever takes it in, so that nothing here takes long.

What came whole and cannot be taken in, for the store is full, is kept and tried again; meanwhile no
more is asked for. What is turned down for another reason, or too often, is not sent again at once.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice

from giaann_p2p.errors import DamagedError, GiaannError, MessageError
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.transfer import Import, Manifest
from giaann_p2p.swarm.actions import Action, Adopt, Apply
from giaann_p2p.swarm.bandwidth import Bandwidth
from giaann_p2p.swarm.bulk import Bulk, Then
from giaann_p2p.swarm.comparing import Held, Others
from giaann_p2p.swarm.deeds import Deeds
from giaann_p2p.swarm.deltas import Lack, deltas_of, request, shards_of
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.limits import of_part
from giaann_p2p.swarm.messages import AskPart, Message, Offer, Offered, Part, Refused
from giaann_p2p.swarm.replicas import Replicas
from giaann_p2p.swarm.settings import Settings
from giaann_p2p.swarm.strain import Strain
from giaann_p2p.swarm.terms import Terms
from giaann_p2p.swarm.window import Windows


@dataclass
class _Arrival:
    """A shard that is on its way."""

    peer: Peer
    parts: Import | None = None
    """What came, once it was offered."""
    kept: Applied = field(default_factory=Applied)
    """Chunks that are offered and kept there as deltas, as far as is known."""
    asked: set[int] = field(default_factory=set)
    """Parts that were asked for and are still to come."""
    refused: int = 0
    """How often the store had no room for it."""
    waiting: bool = False
    """For an offer, for deltas, or for the store."""


_FIRST = 4
"""Shards that are asked for at once as long as nobody knows how large they are."""
_LEAST = 2
"""Shards at once, however large: one is sent while the other is taken in."""
_PARTS = 4
"""Parts of one shard that are asked for at once."""
_MOST_KEPT = 4
"""Shards of which what came is kept when their senders failed."""
_MOST_BYTES = 64 << 20
"""Bytes of what came and is not taken in yet; from there on only the oldest goes on."""
_MOST_TRIES = 5
"""Times that a shard is given to a store that has no room for it."""
_LOOKED_AT = 64
"""Shards that are wanted, and looked at in one go: the next 64 have their turn after them."""
_CONNECTION = 3
"""Bytes of a connection on its way, about."""
_REST = 60.0
"""Seconds in which what the store did not take in is not asked for again of the same peer."""


def at_once(settings: Settings, connections: int | None) -> int:
    """Return how many shards may be on their way, by the size of the last one, if it is known."""
    if connections is None:
        return min(_FIRST, settings.transfers)
    fit = settings.under_way // max(connections, 1)
    return min(max(fit, _LEAST), settings.transfers)


def part_of(manifest: Manifest) -> int:
    """Return how many bytes a part of a shard has, about."""
    return _CONNECTION * manifest.connections // max(len(manifest.parts), 1)


class Arrivals:
    """Some shards at a time; what came of one is kept when its sender fails, for the next."""

    def __init__(
        self,
        settings: Settings,
        replicas: Replicas,
        others: Others,
        held: Held,
        bulk: Bulk,
        deeds: Deeds,
        terms: Terms,
        most: int,
        again: Callable[[Peer, float], None],
        now: float,
    ) -> None:
        self._settings, self._replicas, self._others = settings, replicas, others
        self._held = held
        self._bulk, self._deeds, self._terms, self._again = bulk, deeds, terms, again
        self._bandwidth = Bandwidth(settings.bandwidth, now)
        self._wanted: dict[int, Peer] = {}
        self._arriving: dict[int, _Arrival] = {}
        self._kept: dict[int, _Arrival] = {}
        self._most = most  # connections of a shard
        self._size: int | None = None  # connections of the last that was offered
        self._part: int | None = None  # bytes of a part of it, about
        self._windows = Windows(settings.transfers, settings.hurry_every)
        self._strain = Strain()
        self._rests: dict[tuple[Peer, int], float] = {}  # until when
        self._seen = -1  # changes of replicas

    def __len__(self) -> int:
        return len(self._arriving)

    def want(self, peer: Peer, shard: int) -> None:
        """Have a shard sent by a peer, unless it is on its way; behind those wanted before."""
        if shard not in self._arriving:
            self._wanted[shard] = peer

    def due(self, now: float) -> list[Action]:
        """Ask for what is next of each."""
        if not (self._arriving or self._kept or self._wanted):  # as nearly always
            return []
        self._forget()
        if self._strain.rests(now):
            return []
        actions: list[Action] = []
        size = sum(arrival.parts.size for arrival in self._arriving.values() if arrival.parts)
        may_ask = True  # the oldest always
        for shard, arrival in chain(list(self._arriving.items()), self._begun(now)):
            if not arrival.waiting:
                actions += self._next(shard, arrival, may_ask, now)
            may_ask = size < _MOST_BYTES
        return actions

    def _forget(self) -> None:
        """Leave out what is held no longer."""
        if self._seen == self._replicas.changes:
            return
        self._seen = self._replicas.changes
        for begun in (self._arriving, self._kept, self._wanted):
            for shard in [shard for shard in begun if not self._replicas.holds(shard)]:
                del begun[shard]

    def _begun(self, now: float) -> Iterator[tuple[int, _Arrival]]:
        """Let as many arrive as may at once, from peers that answer; each is asked for in turn."""
        self._rests = {key: until for key, until in self._rests.items() if now < until}
        most = at_once(self._settings, self._size)
        for shard in list(islice(self._wanted, _LOOKED_AT)):
            if len(self._arriving) >= most:
                break
            peer = self._wanted.pop(shard)
            if (peer, shard) in self._rests or not self._others.reachable(peer, now):
                continue
            fits = self._bulk.flow.fits(peer, self._expected(peer))
            if fits and self._from(peer) < self._windows.of(peer, now):
                arrival = self._arriving[shard] = _Arrival(peer)
                yield shard, arrival
            else:
                self._wanted[shard] = peer

    def _from(self, peer: Peer) -> int:
        return sum(arrival.peer == peer for arrival in self._arriving.values())

    def _next(self, shard: int, arrival: _Arrival, may_ask: bool, now: float) -> list[Action]:
        """Go on with a shard: deltas before all else, and before it is taken in at the latest."""
        parts = arrival.parts
        deltas = self._lacking(parts) & arrival.kept if parts and arrival.kept else Applied()
        if parts and not parts.missing and not deltas:
            arrival.waiting = True
            number = self._deeds.taking([shard], partial(self._adopted, shard, arrival))
            return [Adopt(number, parts)]
        if not may_ask or not self._bandwidth.free(now):
            return []
        if not parts:
            return self._offer(shard, arrival, now)
        if deltas:
            return self._fetch(shard, arrival, deltas, now)
        return self._parts(shard, arrival, parts, now)

    def _offer(self, shard: int, arrival: _Arrival, now: float) -> list[Action]:
        """Ask what there is, and for its first part, should it be about as long as others."""
        peer, size = arrival.peer, self._expected(arrival.peer)
        question = Offer(shard, max(2 * size, self._bulk.flow.share(peer)))
        return self._ask(arrival, question, size, partial(self._offered, shard, arrival), now)

    def _fetch(self, shard: int, arrival: _Arrival, deltas: Applied, now: float) -> list[Action]:
        """Ask for deltas, of which nobody knows how long they are."""
        lack, size = Lack(deltas, [shard]), self._bulk.flow.share(arrival.peer)
        question = request(lack, self._replicas, size)
        return self._ask(arrival, question, size, partial(self._fetched, shard, arrival, lack), now)

    def _ask(
        self, arrival: _Arrival, question: Message, size: int, then: Then, now: float
    ) -> list[Action]:
        """Ask, if so many bytes more may be under way."""
        if not self._bulk.flow.fits(arrival.peer, size):
            return []
        arrival.waiting = True
        return [self._bulk.call(arrival.peer, question, size, then, now)]

    def _expected(self, peer: Peer) -> int:
        """Return how many bytes come of the next shard at once, about."""
        return self._bulk.flow.share(peer) if self._part is None else self._part

    def _parts(self, shard: int, arrival: _Arrival, parts: Import, now: float) -> list[Action]:
        """Ask for the next parts, some at a time."""
        size = part_of(parts.manifest)
        to_ask = [number for number in parts.missing if number not in arrival.asked]
        actions: list[Action] = []
        for number in to_ask[: _PARTS - len(arrival.asked)]:
            if not self._bulk.flow.fits(arrival.peer, size):
                break
            arrival.asked.add(number)
            question = AskPart(shard, parts.manifest.digest, number)
            then = partial(self._came, shard, arrival, parts, number)
            actions.append(self._bulk.call(arrival.peer, question, size, then, now))
        return actions

    def _lacking(self, parts: Import) -> Applied:
        """Return the chunks that are offered and not here."""
        shard = parts.manifest.shard
        return (parts.applied - self._held.sets([shard]).get(shard, Applied())).wanted

    def _is_over(self, shard: int, arrival: _Arrival) -> bool:
        """Tell whether nobody waits for an arrival any more."""
        return self._arriving.get(shard) is not arrival

    def _offered(
        self, shard: int, arrival: _Arrival, answer: Message | None, now: float
    ) -> list[Action]:
        if self._is_over(shard, arrival):
            return []
        try:
            if not isinstance(answer, Offered):
                raise MessageError("no answer to a wish for a shard")
            self._bandwidth.spent(len(answer.part))
            manifest = Manifest.from_bytes(answer.manifest)
            if manifest.shard != shard:
                raise MessageError(f"shard {manifest.shard} was offered, not {shard}")
            if manifest.connections > self._most:
                raise MessageError(f"a shard of {manifest.connections} connections")
            self._size = manifest.connections
            self._part = len(answer.part) or part_of(manifest)
            arrival.kept = Applied.received(answer.kept)
            arrival.parts = self._resumed(manifest)
            self._terms.check_set(arrival.parts.applied)
            if answer.part:
                arrival.parts.take(0, answer.part)
        except (MessageError, DamagedError):
            return self._failed(shard, arrival, answer, now)
        return self._on(shard, arrival, now)

    def _resumed(self, manifest: Manifest) -> Import:
        """Go on with what came before, if it is of the same."""
        before = self._kept.pop(manifest.shard, None)
        if before and before.parts and before.parts.manifest == manifest:
            return before.parts
        return Import(manifest, of_part(self._terms.limits, manifest.connections))

    def _fetched(
        self, shard: int, arrival: _Arrival, lack: Lack, answer: Message | None, now: float
    ) -> list[Action]:
        if self._is_over(shard, arrival):
            return []
        try:
            updates, _ = deltas_of(answer, lack, self._replicas, self._terms)
        except (MessageError, DamagedError):
            return self._failed(shard, arrival, answer, now)
        self._bandwidth.spent(sum(len(update.parcel) for update in updates))
        if updates:
            self._others.heard(arrival.peer)
            then = partial(self._applied, shard, arrival)
            return [Apply(self._deeds.taking(shards_of(updates), then), updates)]
        arrival.kept = Applied()  # no longer
        return self._on(shard, arrival, now)

    def _applied(
        self, shard: int, arrival: _Arrival, error: GiaannError | None, now: float
    ) -> list[Action]:
        if error is not None:
            return self._turned_down(shard, arrival, error, now)
        return self._on(shard, arrival, now)

    def _came(
        self,
        shard: int,
        arrival: _Arrival,
        parts: Import,
        number: int,
        answer: Message | None,
        now: float,
    ) -> list[Action]:
        if isinstance(answer, Part):
            self._bandwidth.spent(len(answer.parcel))
        if self._is_over(shard, arrival):
            return []
        try:
            if not isinstance(answer, Part):
                raise MessageError("no answer to a wish for a part of a shard")
            parts.take(number, answer.parcel)
        except (MessageError, DamagedError):
            return self._failed(shard, arrival, answer, now)
        arrival.asked.discard(number)
        return self._on(shard, arrival, now)

    def _on(self, shard: int, arrival: _Arrival, now: float) -> list[Action]:
        self._others.heard(arrival.peer)
        arrival.waiting = False
        if arrival.parts is not None and not self._lacking(arrival.parts):
            self._over(shard, arrival)  # all of it came otherwise meanwhile
        return self.due(now)

    def _failed(
        self, shard: int, arrival: _Arrival, answer: Message | None, now: float
    ) -> list[Action]:
        if arrival.parts is not None and arrival.parts.missing:
            self._kept.pop(shard, None)
            self._kept[shard] = arrival
            if len(self._kept) > _MOST_KEPT:
                del self._kept[next(iter(self._kept))]
        self._over(shard, arrival)
        if isinstance(answer, Refused):
            self._others.heard(arrival.peer)
            if answer.is_busy:
                self._wanted.setdefault(shard, arrival.peer)
                self._windows.turned_away(arrival.peer, self._from(arrival.peer), now)
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
        self._windows.came(arrival.peer, now)
        self._again(arrival.peer, now)
        return []

    def _turned_down(
        self, shard: int, arrival: _Arrival, error: GiaannError, now: float
    ) -> list[Action]:
        """Go on when the store did not take in what came."""
        if isinstance(error, MessageError):  # it was not what was promised
            self._over(shard, arrival)
            self._others.suspect(arrival.peer, now)
            return []
        arrival.refused += 1
        if self._strain.told(error, now) and arrival.refused < _MOST_TRIES:
            arrival.waiting = False
        else:
            self._over(shard, arrival)
            self._rests[arrival.peer, shard] = now + _REST
        return []

    def _over(self, shard: int, arrival: _Arrival) -> None:
        if not self._is_over(shard, arrival):
            del self._arriving[shard]
