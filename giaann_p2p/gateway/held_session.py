"""Keeps a client's session with a swarm for as long as the gateway runs.

A session looks for peers by itself, so it outlives most of them. If it knows no live peer any more,
it may have missed that they came back at other addresses: then it ends, and the swarm is joined
anew through its link, again and again, with growing pauses. Meanwhile requests get Unavailable.

If all peers die at once, nobody is left to read the directory from, and its records do not expire.
So a session that cannot read it calls the peers that it knows, and ends if none of them answers.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, suppress

from giaann_p2p.backoff import Backoff
from giaann_p2p.client.session import Session
from giaann_p2p.errors import GiaannError, UsageError
from giaann_p2p.gateway.failures import Unavailable

_LOG = logging.getLogger("giaann.gateway")
_LOOK_EVERY = 0.5
_ALONE = 5.0
"""Seconds without a live peer after which a session is given up."""
_IN_VAIN = 2
"""Number of looks in a row that must also fail, so that a gateway that was stopped for a while, or
starved, looks again first. A look at a dead swarm takes some ten seconds, so there are only two."""
_BACKOFF = Backoff(first=0.5, longest=5.0)
Joins = Callable[[], AbstractAsyncContextManager[Session]]


class HeldSession:
    """The session of a gateway; `start` joins for the first time, and raises if that fails."""

    def __init__(self, join: Joins, patience: float = 0.0) -> None:
        """Prepare; the first join is tried again for `patience` seconds if it fails."""
        self._join = join
        self._until = asyncio.get_running_loop().time() + patience
        self._session: Session | None = None
        self._why = "the swarm has not been joined yet"
        self._first: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<HeldSession: {self._session or self._why}>"

    @property
    def session(self) -> Session:
        """The present session; Unavailable while there is none."""
        if self._session is None:
            raise Unavailable(f"the swarm cannot be reached now ({self._why}); trying again")
        return self._session

    @contextmanager
    def using(self) -> Iterator[Session]:
        """Yield the present session; Unavailable if it is given up during the block.

        Its transport is then closed, and raises UsageError, which would blame the client.
        """
        session = self.session
        try:
            yield session
        except UsageError:
            if self._session is session:
                raise
            raise Unavailable(f"the session has ended ({self._why}); trying again") from None

    async def start(self) -> None:
        """Join the swarm, and keep a session until `close`."""
        self._task = asyncio.create_task(self._keep())
        await asyncio.wait([self._task, self._first], return_when=asyncio.FIRST_COMPLETED)
        if self._task.done():
            await self._task

    async def close(self) -> None:
        """End the session."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._first.cancel()

    async def _keep(self) -> None:
        backoff = _BACKOFF
        while True:
            try:
                with _translated():
                    async with self._join() as session:
                        self._session, backoff = session, _BACKOFF
                        with suppress(asyncio.InvalidStateError):
                            self._first.set_result(None)
                        await _until_alone(session)
                        self._session, self._why = None, "none of its peers is alive any more"
            except GiaannError as error:
                if not self._first.done() and asyncio.get_running_loop().time() >= self._until:
                    raise
                self._why = str(error)
            finally:
                self._session = None
            backoff = backoff.failed()
            _LOG.warning("joining the swarm again in %.1f s: %s", backoff.pause, self._why)
            await asyncio.sleep(backoff.pause)


@contextmanager
def _translated() -> Iterator[None]:
    """Raise Unavailable for an error of the system, such as a full disk, which may pass, too."""
    try:
        yield
    except OSError as error:
        raise Unavailable(f"this machine failed: {error}") from error


async def _until_alone(session: Session) -> None:
    """Return once there has been no live peer for a while, at two looks or more."""
    clock = asyncio.get_running_loop().time
    seen, in_vain = clock(), 0
    while in_vain < _IN_VAIN or clock() - seen < _ALONE:
        if await _is_anybody_there(session):
            seen, in_vain = clock(), 0
        else:
            in_vain += 1
        await asyncio.sleep(_LOOK_EVERY)


async def _is_anybody_there(session: Session) -> bool:
    """Return whether the directory has a live peer; if it cannot be read, one that answers, too."""
    live = {said.peer for said in session.around.directory.live(session.now)}
    if session.lookout.is_blind:
        live -= await session.silent_peers()
    return bool(live)
