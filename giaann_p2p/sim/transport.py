"""The calls of a real node over the simulated network: whole messages, without connections."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from giaann_p2p.errors import GiaannError, PeerError
from giaann_p2p.net.errors import Reason, Refused, Unreachable
from giaann_p2p.net.transport import Door, Handler, OnAnswer, OnLost
from giaann_p2p.sim.loop import MachineLoop
from giaann_p2p.sim.network import Network
from giaann_p2p.swarm.wire.identity import Peer


class SimTransport:
    """A machine's transport until its next crash; `greeting` returns the token of a peer."""

    def __init__(
        self, me: Peer, network: Network, loop: MachineLoop, greeting: Callable[[Peer], bytes]
    ) -> None:
        self.me = me
        self.closed = False
        """Whether the transport was closed or its machine has crashed: nothing more is sent."""
        self._network, self._loop, self._greeting = network, loop, greeting
        self._handler: Handler = _refuse
        self._tasks: set[asyncio.Task[None]] = set()

    async def call(self, peer: Peer, payload: bytes, *, timeout: float) -> bytes:  # noqa: ASYNC109
        """Return a peer's answer; raise a PeerError if there is none."""
        answer: asyncio.Future[bytes | PeerError] = self._loop.create_future()
        stop = self.ask(peer, payload, timeout=timeout, told=answer.set_result)
        try:
            found = await answer
        finally:
            stop()
        if isinstance(found, PeerError):
            raise found
        return found

    def ask(
        self,
        peer: Peer,
        payload: bytes,
        *,
        timeout: float,
        told: OnAnswer,
    ) -> Callable[[], None]:
        """Send a question; `told` gets the answer, unless the returned function is called first."""
        if self.closed:
            raise Unreachable("this machine is dead")
        waiting = [told]

        def take(answer: bytes | PeerError) -> None:
            if waiting:
                waiting.pop()(answer)

        def answered(answer: bytes | PeerError) -> None:
            self._loop.happen(partial(self._loop.do, partial(take, answer)))

        self._network.ask(self.me, peer, payload, timeout, answered)
        return waiting.clear

    def arrived(self, sender: Peer, body: bytes, reply: OnAnswer) -> None:
        """Let the node answer a question, and send its answer."""
        try:
            answer = self._handler(sender, body)
        except GiaannError as error:
            reply(_refusal(error))
            return
        if isinstance(answer, bytes):
            reply(answer)
            return
        task = self._loop.create_task(_answer(answer, reply))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def serve(self, handler: Handler) -> None:
        """Answer the calls of other peers with `handler` from now on."""
        self._handler = handler

    def guard(self, door: Door) -> None:
        """Do nothing, because the simulated network does not limit strangers."""

    def greeting_of(self, peer: Peer) -> bytes:
        """Return the token that a peer shows."""
        return self._greeting(peer)

    def on_lost(self, lost: OnLost) -> None:
        """Do nothing, because there are no connections."""

    async def close(self) -> None:
        """Send nothing more over this transport."""
        self.closed = True


async def _answer(answer: Awaitable[bytes], reply: OnAnswer) -> None:
    try:
        reply(await answer)
    except GiaannError as error:
        reply(_refusal(error))


def _refusal(error: GiaannError) -> Refused:
    return error if isinstance(error, Refused) else Refused(Reason.FAILED, str(error))


def _refuse(sender: Peer, body: bytes) -> bytes:
    raise Refused(Reason.BUSY, "this peer has not begun yet")
