"""A hostile peer that sends records that must be refused, and floods of unreadable messages.

It knows what any member knows: all records, its own token, the swarm's id.
"""

import random
from enum import Enum

import msgspec

from giaann_p2p.errors import PeerError
from giaann_p2p.net.transport import OnAnswer
from giaann_p2p.sim.hostile.watch import MADE_UP, watch_of
from giaann_p2p.sim.node import RECORD, Node
from giaann_p2p.sim.world import World
from giaann_p2p.swarm.wire import messages
from giaann_p2p.swarm.wire.identity import Identity, Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import MOST_BYTES, Compare
from giaann_p2p.swarm.wire.pulse import (
    LINK_BYTES,
    MOST_PULSES,
    PULSE_SECONDS,
    Pulse,
    joined,
    shown_by,
    split,
)
from giaann_p2p.swarm.wire.record import (
    MOST_CAPACITY,
    MOST_LIFETIME,
    SKEW,
    Announcement,
    signed_as,
)
from giaann_p2p.swarm.wire.row_messages import Read
from giaann_p2p.swarm.wire.token import Rights

_HUGE = bytes([messages.VERSION]) + bytes(MOST_BYTES)
_TIMEOUT = 4.0
_LATER = 1 << 60
"""A sequence number of a record that is higher than any honest peer's."""


class Forgery(Enum):
    """The kinds of messages that a forger sends."""

    SLANDER = "a victim leaves, by a record that it did not sign"
    REPLAY = "an earlier record of a victim, sent again"
    FUTURE = "a record of tomorrow"
    PAST = "a record of yesterday"
    ELSEWHERE = "a record of another swarm"
    LASTING = "a record that lasts for ever"
    BOUNDLESS = "a record with too many addresses"
    ROOMY = "a record with more capacity than a record may announce"
    BROKEN = "a true record with a byte changed"
    PULSE = "a true record with a pulse that its peer never showed"
    BORROWED = "a true record with the pulse of another record"
    STALE = "a true record, perhaps of a dead peer, with its last pulse or an earlier one"
    FLOOD = "many questions, some of them huge, some cut in half"


_OF_PULSES = frozenset({Forgery.PULSE, Forgery.BORROWED, Forgery.STALE})


class Forger(Node):
    """A hostile peer that sends forged records and floods of requests to random peers."""

    def __init__(
        self, world: World, name: str, skew: float, forgeries: frozenset[Forgery], each: int = 6
    ) -> None:
        self._chance = random.Random(f"{world.seed} {name} forgeries")
        self.identity = Identity.from_seed(self._chance.randbytes(32))
        peer = self.identity.peer
        world.admit(peer, Rights.STORAGE | Rights.COMPUTE | Rights.CLIENT)
        around = world.view_of(peer)
        super().__init__(name, peer, world.clock, world.network, world.trace, around, skew)
        self.world, self._each, self.quiet = world, each, True
        self._kinds = sorted(forgeries, key=lambda one: one.name)
        self._early: dict[Peer, bytes] = {}
        self._latest: dict[Peer, tuple[bytes, float]] = {}
        """The last record of each peer with its last pulse, and the time when that pulse
        arrived."""
        self.later(1.0, self.every_tick)

    def begin_to_lie(self) -> None:
        """Begin to forge records, from those that the forger knows by now."""
        self.quiet = False
        self.world.introduce(self)
        directory = self.around.directory
        live, records = directory.live(self.now), directory.records(self.now)
        self._early = {said.peer: data for said, data in zip(live, records, strict=True)}

    def tick(self) -> None:
        """Send some forgeries of random kinds to random peers."""
        if self.quiet:
            return
        for _ in range(self._each):
            self._send(self._chance.choice(self._kinds))

    def _send(self, forgery: Forgery) -> None:
        others = [node for node in self.world.nodes if node.alive and node is not self]
        to, victim = self._chance.choice(others), self._chance.choice(others)
        watch_of(self.world).happened(f"sent: {forgery.name.lower()}")
        if forgery is Forgery.FLOOD:
            self._flood(to.peer)
        elif (record := self._record(forgery, victim)) is not None:
            self.network.tell(self.peer, to.peer, RECORD + record)

    def _record(self, forgery: Forgery, victim: Node) -> bytes | None:
        if forgery is Forgery.REPLAY:
            return self._early.get(victim.peer)
        if forgery is Forgery.BROKEN:
            return self._broken()
        if forgery in _OF_PULSES:
            return self._with_pulse(forgery)
        now = int(self.now)
        mine = self._said(self.peer, now)
        said = {
            Forgery.SLANDER: lambda: self._said(victim.peer, int(victim.now)),
            Forgery.FUTURE: lambda: self._said(self.peer, now + 2 * SKEW),
            Forgery.PAST: lambda: self._said(self.peer, now - 3 * SKEW),
            Forgery.ELSEWHERE: lambda: _changed(mine, swarm_id=bytes(32)),
            Forgery.LASTING: lambda: _changed(mine, lifetime=1 << 40),
            Forgery.BOUNDLESS: lambda: _changed(mine, addresses=("/ip4/192.0.2.1/tcp/1",) * 4000),
            Forgery.ROOMY: lambda: _changed(mine, capacity=2 * MOST_CAPACITY),
        }[forgery]()
        return signed_as(self.identity, said)

    def _said(self, peer: Peer, issued: int) -> Announcement:
        return Announcement(
            swarm_id=self.world.swarm_id,
            peer=peer,
            role="storage",
            state="draining",
            incarnation=MADE_UP,
            sequence=_LATER,
            issued=issued,
            lifetime=MOST_LIFETIME,
            token=self.world.token_of(peer),
        )

    def _broken(self) -> bytes | None:
        records = self.around.records(self.now)
        if not records:
            return None
        data = bytearray(self._chance.choice(records))
        data[self._chance.randrange(len(data))] ^= 1 << self._chance.randrange(8)
        return bytes(data)

    def _with_pulse(self, forgery: Forgery) -> bytes | None:
        """Return a peer's record with a pulse that would show the peer to be alive now."""
        live, records = self.around.directory.live(self.now), self.around.records(self.now)
        for said, data in zip(live, records, strict=True):
            if self._latest.get(said.peer, (b"", 0.0))[0] != data:
                self._latest[said.peer] = data, self.now
        if not self._latest:
            return None
        victim, (data, seen) = self._chance.choice(list(self._latest.items()))
        if forgery is Forgery.STALE:
            return self._chance.choice([data, self._early.get(victim, data)])
        last, record = split(data)
        since = int(self.now - seen) // PULSE_SECONDS
        number = min(last.number + 1 + since, MOST_PULSES)
        if forgery is Forgery.PULSE:
            return joined(Pulse(number, self._chance.randbytes(LINK_BYTES)), record)
        other, _ = self._chance.choice(list(self._latest.values()))
        return joined(Pulse(number, shown_by(other).link), record)

    def _flood(self, to: Peer) -> None:
        numbers = self._chance.randbytes(8 * self._chance.randrange(1, 64))
        whole = messages.encode(Read(numbers, numbers))
        some: list[Message] = [
            Read(numbers, numbers[:-8]),
            Read(numbers + b"\0", numbers),
            Compare(self._chance.randbytes(20), [b""] * 3),
        ]
        frames = [
            _HUGE,
            whole[: self._chance.randrange(len(whole))],
            bytes([99]) + whole[1:],
            b"",
            *[whole] * 8,
            *map(messages.encode, some),
        ]
        for frame in frames:
            self.network.ask(self.peer, to, frame, _TIMEOUT, _ignore)

    def asked(self, sender: Peer, question: Message, reply: OnAnswer) -> None:
        """Leave every request unanswered."""


def _changed(said: Announcement, **fields: object) -> Announcement:
    changed: Announcement = msgspec.structs.replace(said, **fields)
    return changed


def _ignore(answer: bytes | PeerError) -> None:
    """Ignore the answer to a flooding request."""
