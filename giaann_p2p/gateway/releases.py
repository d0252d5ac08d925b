"""The releases and the start times of a swarm's peers: each peer is asked once.

Records do not have them. Peers of an earlier release refuse the question, so theirs stay unknown.
"""

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from giaann_p2p.client.session import Session
from giaann_p2p.errors import MessageError, PeerError
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.member_messages import AskRelease, ReleaseIs
from giaann_p2p.swarm.wire.messages import decode, encode
from giaann_p2p.swarm.wire.record import Key, Role

_WITHIN, _AGAIN = 2.0, 60.0
"""Seconds that a peer has to answer, and seconds after which a silent peer is asked again."""
_AT_ONCE = 16
"""Maximum number of peers asked concurrently."""
_Run = tuple[Peer, Role, int]
"""A run of a peer in a role: its incarnation is another one after a restart."""


class Origin(NamedTuple):
    """A peer's release and start time, as it reports them."""

    version: str
    began: int
    """When it began, in seconds since 1970, by the clock of this machine."""


class Releases:
    """The releases and start times of the live peers, which are asked in the background."""

    def __init__(self) -> None:
        self._known = dict[_Run, Origin]()
        self._tried = dict[_Run, float]()
        self._asking: asyncio.Task[None] | None = None

    def look(self, session: Session) -> dict[Key, Origin]:
        """Return the known origins of live peers, and begin to ask the peers that are due."""
        live = session.around.directory.live(session.now)
        runs = {(said.peer, said.role, said.incarnation) for said in live}
        self._known = {run: found for run, found in self._known.items() if run in runs}
        self._tried = {run: at for run, at in self._tried.items() if run in runs}
        now = asyncio.get_running_loop().time()
        due = [run for run in runs if self._tried.get(run, float("-inf")) + _AGAIN <= now]
        due = [run for run in due if run not in self._known]
        if due and (self._asking is None or self._asking.done()):
            self._tried |= dict.fromkeys(due, now)
            self._asking = asyncio.create_task(self._ask(session, due))
        return {(peer, role): found for (peer, role, _), found in self._known.items()}

    async def close(self) -> None:
        """Stop asking."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    async def _ask(self, session: Session, runs: Iterable[_Run]) -> None:
        turns = asyncio.Semaphore(_AT_ONCE)

        async def ask(run: _Run) -> None:
            async with turns:
                found = await _origin_of(session, run[0])
            if found is not None:
                self._known[run] = found

        await asyncio.gather(*map(ask, runs))


async def _origin_of(session: Session, peer: Peer) -> Origin | None:
    """Ask a peer for its origin; None if it does not return one with a printable version."""
    question = encode(AskRelease())
    try:
        answer = decode(await session.place.transport.call(peer, question, timeout=_WITHIN))
    except (PeerError, MessageError):
        return None
    if not isinstance(answer, ReleaseIs) or not answer.version.isprintable():
        return None
    return Origin(answer.version, max(0, int(session.now) - answer.seconds))
