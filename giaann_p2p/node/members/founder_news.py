"""Keeps documents of the founder current, by gossip: the revoked members, and the swarm's rules.

Each peer announces in its record the number of the newest document that it has. So news spreads as
fast as records do, and each peer fetches a document once. A peer that announces a newer one and
does not deliver it is not asked again for a minute.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from contextlib import suppress
from hashlib import blake2b

from giaann_p2p.errors import PeerError, UsageError
from giaann_p2p.net.transport import Transport
from giaann_p2p.node.members.gate import Gate
from giaann_p2p.node.members.lookout import Lookout
from giaann_p2p.swarm.wire.identity import Peer, name_of
from giaann_p2p.swarm.wire.member_messages import AskEdition, AskRevoked, EditionIs, RevokedIs
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import decode, encode
from giaann_p2p.swarm.wire.record import Announcement

_EVERY = 2.0
"""Seconds between two looks for a newer document."""
_WITHIN = 4.0
"""Timeout of a request for a document, in seconds."""
_CATCH_UP = 10.0
"""Maximum seconds for which a new client looks for the newest document, before it acts on the one
that it has."""
_REST = 60.0
"""Seconds for which a peer that did not deliver its document is not asked again."""


class FounderNews(ABC):
    """Fetches newer documents of one kind from the peers that announce them."""

    what: str
    """The name of this kind of document."""

    def __init__(
        self, gate: Gate, lookout: Lookout, transport: Transport, log: logging.Logger
    ) -> None:
        self._gate, self._lookout, self._transport, self._log = gate, lookout, transport, log
        self._rests: dict[Peer, float] = {}  # peers not to ask, each with the end of its pause

    @property
    @abstractmethod
    def number(self) -> int:
        """The number of the newest document that this peer has."""

    @abstractmethod
    def announced(self, said: Announcement) -> int:
        """Return the number of the newest document that another peer announces."""

    @abstractmethod
    def question(self) -> Message:
        """Return the request for a newer document."""

    @abstractmethod
    def learned(self, answer: Message) -> str:
        """Adopt the document in an answer and return its summary; return "" if it is not newer.

        Raise UsageError if the document is forged.
        """

    async def run(self) -> None:
        """Look for a newer document every 2 seconds, until cancelled."""
        await self._lookout.whole.wait()
        while True:
            await self.look()
            await asyncio.sleep(_EVERY)

    async def catch_up(self) -> None:
        """Fetch newer documents while peers announce and deliver them, for at most 10 seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_CATCH_UP):
                while self._newer():
                    await self.look()

    async def look(self) -> None:
        """Fetch a newer document, if a peer announces one."""
        now = asyncio.get_running_loop().time()
        self._rests = {peer: until for peer, until in self._rests.items() if now < until}
        if not (newer := self._newer()):
            return
        me = self._lookout.view.me
        peer = min(newer, key=lambda peer: _turn(me, peer))
        try:
            message = encode(self.question())
            answer = decode(await self._transport.call(peer, message, timeout=_WITHIN))
            if says := self.learned(answer):
                self._log.info("received %s %d: %s", self.what, self.number, says)
                return
        except (PeerError, UsageError) as error:
            self._log.debug("no %s from %s: %s", self.what, name_of(peer), error)
        self._rests[peer] = now + _REST

    def _newer(self) -> list[Peer]:
        """Return the peers that announce a newer document than ours.

        Peers that recently failed to deliver their document are left out.
        """
        around, number = self._lookout.view, self.number
        return [
            said.peer
            for said in around.directory.live(self._lookout.time())
            if self.announced(said) > number
            and said.peer not in self._rests
            and said.peer != around.me
        ]


class RevokedNews(FounderNews):
    """Keeps the list of revoked members current."""

    what = "list of revoked members"

    @property
    def number(self) -> int:
        """The number of this peer's list."""
        return self._gate.admission.revoked.number

    def announced(self, said: Announcement) -> int:
        """Return the number of another peer's list."""
        return said.revoked

    def question(self) -> Message:
        """Return the request for a newer list."""
        return AskRevoked(self.number)

    def learned(self, answer: Message) -> str:
        """Adopt a newer list; return how many peers it revokes, as text."""
        if isinstance(answer, RevokedIs) and answer.revoked and self._gate.learn(answer.revoked):
            return f"{len(self._gate.admission.revoked.peers)} peers"
        return ""


class EditionNews(FounderNews):
    """Keeps the edition of the swarm's rules current."""

    what = "edition"

    @property
    def number(self) -> int:
        """The number of this peer's newest edition, even while its shards are being divided."""
        return self._gate.newest_number

    def announced(self, said: Announcement) -> int:
        """Return the number of another peer's edition."""
        return said.edition

    def question(self) -> Message:
        """Return the request for a newer edition."""
        return AskEdition(self.number)

    def learned(self, answer: Message) -> str:
        """Adopt a newer edition; return its number of replicas, or that it has more shards."""
        if not isinstance(answer, EditionIs) or not answer.edition:
            return ""
        if not self._gate.learn_edition(answer.edition):
            return ""
        rules = self._gate.rules()
        has_effect = rules.edition == self.number
        return f"{rules.replicas} replicas of each shard" if has_effect else "more shards"


def _turn(me: Peer, peer: Peer) -> bytes:
    """Return the sort key of `peer` in the order in which `me` asks other peers.

    Each peer has an order of its own, so that not all ask a liar or a dead peer first.
    """
    return blake2b(me + peer, digest_size=8).digest()
