"""The peer directory for a client, which asks other peers for it instead of joining the DHT.

Joining the DHT takes seconds, most of which are spent on importing hivemind, and a client announces
nothing. So a client asks peers for the records in their directories.

1. The first look asks the peers of the join link, and takes the first answer. Each later look asks
   a few peers at random, of the link and of the directory, and takes all their answers. So a peer
   that leaves out records can mislead a client only until the next look.
2. Records are signed, and each answer is kept apart, as the answers of nodes of the DHT are. An
   answer without a single valid record is ignored.
3. A look soon after one that brought all records asks for pulses only, and gets only new records
   whole (see `DirectoryPages`). After anything that could make it miss a record, the next look asks
   for all records again (`forget`).
4. If nobody answers, the client joins the DHT after all, and uses it from then on: peers of earlier
   releases do not know the question.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Collection, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from itertools import chain, islice
from typing import Any

from giaann_p2p.errors import MessageError, PeerError, UsageError
from giaann_p2p.net.board import Board
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.net.transport import Transport
from giaann_p2p.swarm.members.directory_pages import NEWS
from giaann_p2p.swarm.wire.identity import Peer, name_of
from giaann_p2p.swarm.wire.member_messages import PAGE_BYTES, AskPulses, AskRecords, RecordsAre
from giaann_p2p.swarm.wire.messages import Refusal, decode, encode
from giaann_p2p.swarm.wire.pulse import is_bare
from giaann_p2p.swarm.wire.record import ROLES, Role

_LOG = logging.getLogger("giaann.client")
_FIRST = 8
"""Number of peers that the first look asks at once."""
_LATER = 3
"""Number of peers that each later look asks."""
_WITHIN = 2.0
"""Timeout of one request, in seconds: less than `Options.look_within`, so that a peer that does not
answer fails no look."""
_TRIED = 8
"""Number of records of an answer that are verified until one is valid."""
_FOR_PULSES = NEWS - 2
"""Seconds after a look during which the next looks ask for pulses only. Peers send new records
whole for longer than that, so a client whose question or clock is a little late misses none."""
Answer = dict[Role, list[bytes]]
"""A peer's records, by role."""
Joins = Callable[[], AbstractAsyncContextManager[Board]]
"""A function that joins the DHT for the duration of a context."""


class AskedBoard:
    """A client's access to the peer directory; call `begin` first, and `close` at the end.

    `link` are the peers of the join link. `is_valid` verifies a record. `joins` joins the DHT if no
    peer answers.
    """

    def __init__(
        self,
        transport: Transport,
        link: Collection[Peer],
        is_valid: Callable[[bytes], bool],
        joins: Joins,
    ) -> None:
        self.known: Callable[[], Iterable[Peer]] = tuple
        """Returns the live peers of the directory; the owner sets it once there is one."""
        self._transport, self._link = transport, link
        self._is_valid, self._joins = is_valid, joins
        self._ahead: dict[Role, list[list[bytes]]] = {}  # answers that no look has taken yet
        self._until = 0.0  # until then looks ask for pulses, by the event loop's clock
        self._dht: Board | None = None
        self._stack = AsyncExitStack()
        self._joining: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<AskedBoard: {'peers are asked' if self._dht is None else 'in the DHT'}>"

    @property
    def in_dht(self) -> bool:
        """Whether the DHT is used for looks."""
        return self._dht is not None

    async def begin(self) -> None:
        """Ask the peers of the link; join the DHT if none of them answers."""
        peers = list(self._link)[:_FIRST]
        if answer := await _first_of([self._answer(peer, AskRecords) for peer in peers]):
            self._took([answer])
        else:
            await self.join_dht()

    async def join_dht(self) -> None:
        """Join the DHT, and use it for all looks from now on."""
        await asyncio.shield(self._join())

    async def post(self, role: Role, record: bytes, lifetime: float) -> None:
        """Raise UsageError, because a client announces nothing."""
        raise UsageError("a client has no record to post")

    def held(self, role: Role) -> list[bytes]:
        """Return nothing, because a client keeps no records for others."""
        return []

    def forget(self) -> None:
        """Make the next look return all records."""
        self._until = 0.0
        if self._dht is not None:
            self._dht.forget()

    def missed(
        self,
        live: int,
        overdue: Callable[[Role, float], Collection[Peer]],
        strange: Collection[int],
    ) -> bool:
        """Pass the call to the DHT, if it was joined; peers that are asked list all anyway."""
        return self._dht is not None and self._dht.missed(live, overdue, strange)

    async def look(self, role: Role) -> list[list[bytes]]:
        """Return a role's records, one list per peer that answered; Unreachable if none did.

        The peers are asked for all roles at once; the looks for other roles take these answers.
        """
        if self._dht is not None:
            return await self._dht.look(role)
        if role not in self._ahead:
            answers = await self._asked()
            if not answers and self._until:  # earlier releases do not know `AskPulses`
                self.forget()
                answers = await self._asked()
            if not answers:
                self._join()
                raise Unreachable("no peer sent its directory; joining the DHT instead")
            self._took(answers)
        return self._ahead.pop(role)

    def _took(self, answers: list[Answer]) -> None:
        """Keep answers for the looks that will take them."""
        self._ahead = {role: [answer[role] for answer in answers] for role in ROLES}
        self._until = asyncio.get_running_loop().time() + _FOR_PULSES

    async def close(self) -> None:
        """Leave the DHT, if it was joined."""
        if self._joining is not None:
            self._joining.cancel()
            await asyncio.gather(self._joining, return_exceptions=True)
        await self._stack.aclose()

    def _join(self) -> asyncio.Task[None]:
        """Return the task that joins the DHT; begin it, or begin it again if it has failed."""
        task = self._joining
        if task is None or (task.done() and not self.in_dht):
            task = self._joining = asyncio.create_task(self._join_dht())
            task.add_done_callback(_note)
        return task

    async def _join_dht(self) -> None:
        self._dht = await self._stack.enter_async_context(self._joins())

    async def _asked(self) -> list[Answer]:
        """Ask some peers at random, and return the answers of all that answer."""
        peers = list({*self._link, *self.known()})
        chosen = random.sample(peers, min(_LATER, len(peers)))
        are_enough = asyncio.get_running_loop().time() < self._until
        kind = AskPulses if are_enough else AskRecords
        answers = await asyncio.gather(*(self._answer(peer, kind) for peer in chosen))
        return [answer for answer in answers if answer is not None]

    async def _answer(self, peer: Peer, kind: type[AskRecords | AskPulses]) -> Answer | None:
        """Return a peer's records or pulses; None if none of those that are checked is valid.

        Any bare pulse counts as valid: if its record is not known, the next look asks for all
        records.
        """
        ends = await asyncio.gather(
            *(self._records(peer, kind, role) for role in ROLES), return_exceptions=True
        )
        found: Answer = {}
        for role, end in zip(ROLES, ends, strict=True):
            if isinstance(end, PeerError):
                _LOG.debug("no directory from %s: %s", name_of(peer), end)
                return None
            if isinstance(end, BaseException):
                raise end
            found[role] = end
        some = islice(chain.from_iterable(found.values()), _TRIED)
        may_be_bare = kind is AskPulses
        is_valid = ((may_be_bare and is_bare(one)) or self._is_valid(one) for one in some)
        return found if any(is_valid) else None

    async def _records(
        self, peer: Peer, kind: type[AskRecords | AskPulses], role: Role
    ) -> list[bytes]:
        """Return a peer's records of a role, page by page; PeerError if it does not send them."""
        found, pages, page = list[bytes](), 1, 0
        while page < pages:
            question = encode(kind(role, page))
            answer = decode(await self._transport.call(peer, question, timeout=_WITHIN))
            if isinstance(answer, Refusal):
                raise MessageError(answer.reason)
            if not isinstance(answer, RecordsAre):
                raise MessageError("the answer does not contain records")
            if (size := sum(map(len, answer.records))) > PAGE_BYTES:
                raise MessageError(f"a page has {size:,} bytes; it may have {PAGE_BYTES:,}")
            found += answer.records
            pages, page = answer.pages, page + 1
        return found


def _note(joining: asyncio.Task[None]) -> None:
    if not joining.cancelled() and (error := joining.exception()) is not None:
        _LOG.info("joining the DHT failed: %s", error)


async def _first_of(asking: list[Coroutine[Any, Any, Answer | None]]) -> Answer | None:
    """Return the first answer, and cancel the other requests; return None if nobody answers."""
    tasks = [asyncio.create_task(one) for one in asking]
    try:
        for answer in asyncio.as_completed(tasks):
            if (found := await answer) is not None:
                return found
        return None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
