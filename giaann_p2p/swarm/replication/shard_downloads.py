"""Downloads of whole shards: a peer offers a shard, sends it in parts, and the store adopts it.

An offer describes a snapshot of the shard with its set of chunks. If chunks are missing here and
the sender keeps their deltas, these deltas are fetched first, until no more come. Only chunks whose
delta is gone should arrive inside the shard alone (see `Fetcher`).

Many small shards or a few large ones download at a time (see `at_once`). When a sender is busy, the
download waits, and the sender's window shrinks to the number of requests that it did accept. A peer
is never asked for more bytes than will come soon (see `Flow`); the last shard's size predicts that
of the next one. Parts are kept as raw bytes and the store unpacks them, so no step here takes long.

If the store is too full to adopt a complete shard, the shard is kept and adoption is retried;
meanwhile nothing more is requested. A shard that is rejected for another reason, or too often, or
that exceeds this peer's capacity, or that has withdrawals missing from this peer's copy of the
founder's list, is not requested again from the same peer for a minute.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice

from giaann_p2p.errors import DamagedError, GiaannError, MessageError
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.transfer import Import, Manifest
from giaann_p2p.swarm.replication.bandwidth import Bandwidth
from giaann_p2p.swarm.replication.bulk_calls import Then
from giaann_p2p.swarm.replication.delta_fetch import Lack, deltas_of, request, shards_of
from giaann_p2p.swarm.replication.settings import Settings
from giaann_p2p.swarm.replication.shared import Shared
from giaann_p2p.swarm.replication.store_backoff import StoreBackoff
from giaann_p2p.swarm.replication.window import Windows
from giaann_p2p.swarm.wire.actions import Action, Adopt, Apply
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.limits import of_part
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import AskPart, Offer, Offered, Part, Refusal


@dataclass
class _Arrival:
    """The download of one shard from one peer."""

    peer: Peer
    """The sender."""
    parts: Import | None = None
    """The parts received so far; None until the sender has offered the shard."""
    kept: Applied = field(default_factory=Applied)
    """The chunks in the offer whose deltas the sender still keeps, as far as is known."""
    asked: set[int] = field(default_factory=set)
    """Numbers of the parts that were requested and have not arrived."""
    refused: int = 0
    """Number of times that the store rejected the shard or one of its deltas."""
    waiting: bool = False
    """Whether the download waits for an offer, for deltas, or for the store."""


_FIRST = 4
"""Number of concurrent downloads until the first shard's size is known."""
_LEAST = 2
"""Number of concurrent downloads always allowed, however large the shards: one shard is sent while
the store adopts the other."""
_PARTS = 4
"""Maximum number of parts of one shard in flight at a time."""
_MOST_KEPT = 4
"""Maximum number of partial downloads kept after their senders failed."""
_MOST_BYTES = 64 << 20
"""Maximum number of bytes received but not adopted yet. Beyond it, only the oldest download may
request more."""
_MOST_TRIES = 5
"""Maximum number of attempts to make the store adopt one shard while it has no room."""
_LOOKED_AT = 64
"""Maximum number of queued shards examined in one step; the others are examined in later steps."""
_CONNECTION = 3
"""Approximate size of a connection in a transferred shard, in bytes."""
_REST = 60.0
"""Seconds for which a shard that was rejected is not requested again from the same peer."""


def at_once(settings: Settings, connections: int | None) -> int:
    """Return how many shards may download at a time, given the last shard's connections."""
    if connections is None:
        return min(_FIRST, settings.transfers)
    fit = settings.under_way // max(connections, 1)
    return min(max(fit, _LEAST), settings.transfers)


def part_of(manifest: Manifest) -> int:
    """Return the approximate size in bytes of one part of a shard."""
    return _CONNECTION * manifest.connections // max(len(manifest.parts), 1)


class ShardDownloads:
    """One storage peer's downloads of whole shards.

    When a sender fails, the parts received from it are kept for the next sender.
    """

    def __init__(self, shared: Shared, most: int, again: Callable[[Peer, float], None]) -> None:
        settings = shared.settings
        self._settings, self._replicas, self._others = settings, shared.replicas, shared.others
        self._held, self._bulk, self._deeds = shared.held, shared.bulk, shared.writes
        self._delta_checks, self._again = shared.delta_checks, again
        self._bandwidth = Bandwidth(settings.bandwidth, shared.begun)
        self._wanted: dict[int, Peer] = {}
        self._arriving: dict[int, _Arrival] = {}
        self._kept: dict[int, _Arrival] = {}
        self._most = most  # maximum number of connections of a shard that is accepted
        self._size: int | None = None  # connections of the last offered shard
        self._part: int | None = None  # approximate bytes of one of its parts
        self._windows = Windows(settings.transfers, settings.hurry_every)
        self._store_backoff = StoreBackoff()
        self._rests: dict[tuple[Peer, int], float] = {}  # end of the pause after a rejection
        self._seen = -1  # `Replicas.changes` when `_forget` last ran

    def __len__(self) -> int:
        return len(self._arriving)

    def want(self, peer: Peer, shard: int) -> None:
        """Queue the download of a shard from a peer, unless it is already in progress."""
        if shard not in self._arriving:
            self._wanted[shard] = peer

    def due(self, now: float) -> list[Action]:
        """Request the next piece of each download, and begin new ones."""
        if not (self._arriving or self._kept or self._wanted):  # the common case
            return []
        self._forget()
        if self._store_backoff.rests(now):
            return []
        actions: list[Action] = []
        size = sum(arrival.parts.size for arrival in self._arriving.values() if arrival.parts)
        may_ask = True  # the oldest download may always request more
        for shard, arrival in chain(list(self._arriving.items()), self._begun(now)):
            if not arrival.waiting:
                actions += self._next(shard, arrival, may_ask, now)
            may_ask = size < _MOST_BYTES
        return actions

    def _forget(self) -> None:
        """Drop the downloads of shards that this peer no longer holds."""
        if self._seen == self._replicas.changes:
            return
        self._seen = self._replicas.changes
        for begun in (self._arriving, self._kept, self._wanted):
            for shard in [shard for shard in begun if not self._replicas.holds(shard)]:
                del begun[shard]

    def _begun(self, now: float) -> Iterator[tuple[int, _Arrival]]:
        """Begin queued downloads from peers that answer, as far as the limits allow."""
        self._rests = {key: until for key, until in self._rests.items() if now < until}
        most = at_once(self._settings, self._size)
        for shard in list(islice(self._wanted, _LOOKED_AT)):
            if len(self._arriving) >= most:
                break
            peer = self._wanted.pop(shard)
            if (peer, shard) in self._rests or not self._others.not_suspected(peer, now):
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
        """Take a download's next step: an offer, then deltas, then parts, and adoption last."""
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
        """Ask a peer to offer a shard, with the first part inline unless it is unusually long."""
        peer, size = arrival.peer, self._expected(arrival.peer)
        question = Offer(shard, max(2 * size, self._bulk.flow.share(peer)))
        return self._ask(arrival, question, size, partial(self._offered, shard, arrival), now)

    def _fetch(self, shard: int, arrival: _Arrival, deltas: Applied, now: float) -> list[Action]:
        """Ask for a shard's deltas; their size is unknown, so reserve a share of the window."""
        lack, size = Lack(deltas, [shard]), self._bulk.flow.share(arrival.peer)
        question = request(lack, self._replicas, size)
        return self._ask(arrival, question, size, partial(self._fetched, shard, arrival, lack), now)

    def _ask(
        self, arrival: _Arrival, question: Message, size: int, then: Then, now: float
    ) -> list[Action]:
        """Ask the sender a question, if `size` more bytes fit into the sender's window."""
        if not self._bulk.flow.fits(arrival.peer, size):
            return []
        arrival.waiting = True
        return [self._bulk.call(arrival.peer, question, size, then, now)]

    def _expected(self, peer: Peer) -> int:
        """Return the expected size of the next shard's first part, in bytes."""
        return self._bulk.flow.share(peer) if self._part is None else self._part

    def _parts(self, shard: int, arrival: _Arrival, parts: Import, now: float) -> list[Action]:
        """Request a shard's next parts, with up to _PARTS in flight."""
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
        """Return the chunks of an offered shard that are missing here."""
        shard = parts.manifest.shard
        return (parts.applied - self._held.sets([shard]).get(shard, Applied())).wanted

    def _is_over(self, shard: int, arrival: _Arrival) -> bool:
        """Return whether a download has ended or was replaced, so that its answers are stale."""
        return self._arriving.get(shard) is not arrival

    def _offered(
        self, shard: int, arrival: _Arrival, answer: Message | None, now: float
    ) -> list[Action]:
        if self._is_over(shard, arrival):
            return []
        try:
            if not isinstance(answer, Offered):
                raise MessageError("no valid answer to a request for a shard")
            self._bandwidth.spent(len(answer.part))
            manifest = Manifest.from_bytes(answer.manifest)
            if manifest.shard != shard:
                raise MessageError(
                    f"shard {shard} was requested, but shard {manifest.shard} was offered"
                )
            if manifest.connections > self._most:
                return self._rest(shard, arrival, now)  # too large for this peer alone
            self._size = manifest.connections
            self._part = len(answer.part) or part_of(manifest)
            arrival.kept = Applied.received(answer.kept)
            arrival.parts = self._resumed(manifest)
            if not self._delta_checks.heeds_all(arrival.parts.applied):
                return self._rest(shard, arrival, now)
            if answer.part:
                arrival.parts.take(0, answer.part)
        except (MessageError, DamagedError):
            return self._failed(shard, arrival, answer, now)
        return self._on(shard, arrival, now)

    def _resumed(self, manifest: Manifest) -> Import:
        """Resume an earlier partial download that had the same manifest; else start a new one."""
        before = self._kept.pop(manifest.shard, None)
        if before and before.parts and before.parts.manifest == manifest:
            return before.parts
        return Import(manifest, of_part(self._delta_checks.limits, manifest.connections))

    def _fetched(
        self, shard: int, arrival: _Arrival, lack: Lack, answer: Message | None, now: float
    ) -> list[Action]:
        if self._is_over(shard, arrival):
            return []
        try:
            updates, _ = deltas_of(answer, lack, self._replicas, self._delta_checks)
        except (MessageError, DamagedError):
            return self._failed(shard, arrival, answer, now)
        self._bandwidth.spent(sum(len(update.parcel) for update in updates))
        if updates:
            self._others.heard(arrival.peer)
            then = partial(self._applied, shard, arrival)
            return [Apply(self._deeds.taking(shards_of(updates), then), updates)]
        arrival.kept = Applied()  # the sender no longer keeps these deltas
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
                raise MessageError("no valid answer to a request for a part of a shard")
            parts.take(number, answer.parcel)
        except (MessageError, DamagedError):
            return self._failed(shard, arrival, answer, now)
        arrival.asked.discard(number)
        return self._on(shard, arrival, now)

    def _on(self, shard: int, arrival: _Arrival, now: float) -> list[Action]:
        self._others.heard(arrival.peer)
        arrival.waiting = False
        if arrival.parts is not None and not self._lacking(arrival.parts):
            self._over(shard, arrival)  # its chunks have all arrived in other ways
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
        if isinstance(answer, Refusal):
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
        self._store_backoff.told(None, now)
        self._over(shard, arrival)
        self._windows.came(arrival.peer, now)
        self._again(arrival.peer, now)
        return []

    def _turned_down(
        self, shard: int, arrival: _Arrival, error: GiaannError, now: float
    ) -> list[Action]:
        """Handle data that the store rejected: suspect the sender, retry later, or give up."""
        if isinstance(error, MessageError):  # not what the manifest promised
            self._over(shard, arrival)
            self._others.suspect(arrival.peer, now)
            return []
        arrival.refused += 1
        if self._store_backoff.told(error, now) and arrival.refused < _MOST_TRIES:
            arrival.waiting = False
        else:
            self._rest(shard, arrival, now)
        return []

    def _rest(self, shard: int, arrival: _Arrival, now: float) -> list[Action]:
        """End a download that cannot succeed now, perhaps through no fault of the sender."""
        self._over(shard, arrival)
        self._rests[arrival.peer, shard] = now + _REST
        return []

    def _over(self, shard: int, arrival: _Arrival) -> None:
        if not self._is_over(shard, arrival):
            del self._arriving[shard]
