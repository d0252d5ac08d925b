"""Calls over byte streams: one connection per pair of peers, dialled on demand.

1. A call uses the existing connection. If there is none, it waits for a dial that all calls to this
   peer share.
2. When both sides dial at once, both keep the connection that the peer with the lower id dialled,
   and drain the other one. When a peer dials although there is an older connection, it has lost the
   older one: calls use the new connection, and the old one is drained.
3. A connection that a peer has opened is used for calls to that peer only after the peer has said
   hello.
4. After a connection is lost, the next call dials again. A call is retried automatically only if
   nothing of it was sent.
5. Connections, bytes and dials are bounded. A peer above a limit is refused, with the reason.
6. If a door is set, a peer whose greeting the door does not admit is a stranger: its requests must
   be few and short, its connection ends soon, and it never displaces a peer that is not a stranger.
"""

import asyncio
import secrets
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from giaann_p2p.errors import UsageError
from giaann_p2p.net.connection import Connection
from giaann_p2p.net.errors import NoConnection, Reason, Refused, Unreachable
from giaann_p2p.net.limits import TransportLimits
from giaann_p2p.net.link import Link
from giaann_p2p.net.room import Room
from giaann_p2p.net.transport import ByteStream, Door, Handler, OnAnswer, OnLost, Streams
from giaann_p2p.swarm.wire.identity import Peer

_TRIES = 4
"""The most connections that one call tries. A connection may end before the call is sent: because
it was old, or because it lost against a simultaneous dial. The other tries are spare."""


def draw_number() -> int:
    """Return a random 64-bit number that seeds the checksums of one stream."""
    return secrets.randbits(64)


class StreamTransport:
    """A transport over byte streams; construct it inside a running event loop."""

    def __init__(
        self,
        streams: Streams,
        limits: TransportLimits | None = None,
        draw: Callable[[], int] = draw_number,
        greeting: bytes = b"",
    ) -> None:
        """Create a transport that sends `greeting`, such as a token, to each peer; see `guard`."""
        self.limits = limits or TransportLimits()
        self._streams = streams
        self._draw = draw
        self._loop = asyncio.get_running_loop()
        self._room_in = Room(self.limits.bytes_in)
        self._room_out = Room(self.limits.bytes_out)
        self._links: dict[Peer, Link] = {}  # the connection to each peer that calls use
        self._all: dict[Link, None] = {}
        self._dials: dict[Peer, asyncio.Task[Link | Unreachable | Refused]] = {}
        self._handler: Handler | None = None
        self._greeting = greeting
        self._door: Door = lambda peer, greeting: ""
        self._lost: list[OnLost] = []
        self._closed = False
        streams.listen(self._accept)

    def __repr__(self) -> str:
        return f"<StreamTransport of {self.me[:4].hex()}: {len(self._all)} connections>"

    @property
    def me(self) -> Peer:
        """The public key of this peer."""
        return self._streams.me

    @property
    def connections(self) -> int:
        """The number of connections, including those that are closing."""
        return len(self._all)

    def round_trip(self, peer: Peer) -> float | None:
        """Return the round trip of the last ping to a peer, in seconds; None if it is not known."""
        link = self._links.get(peer)
        return link.connection.round_trip if link is not None else None

    def serve(self, handler: Handler) -> None:
        """Answer the calls of other peers with a handler from now on."""
        self._handler = handler

    def guard(self, door: Door) -> None:
        """Restrict strangers from now on: peers whose greeting the door does not admit.

        Call this again whenever the door would judge greetings differently than before.
        """
        self._door = door
        for link in list(self._all):
            link.look_again()

    def greeting_of(self, peer: Peer) -> bytes:
        """Return the greeting that a peer sent; empty if it sent none or is not connected."""
        link = self._links.get(peer)
        if link is not None and link.connection.greeted:
            return link.connection.greeting
        shown = [other.connection.greeting for other in self._all if other.peer == peer]
        return max(shown, key=len, default=b"")

    def serves(self, peer: Peer) -> bool:
        """Return whether a peer is connected, has said hello, and is not a stranger."""
        links = [link for link in self._all if link.peer == peer]
        return any(link.connection.greeted and not link.is_strange for link in links)

    def on_lost(self, lost: OnLost) -> None:
        """Register a callback for lost connections to peers."""
        self._lost.append(lost)

    async def call(self, peer: Peer, payload: bytes, *, timeout: float) -> bytes:  # noqa: ASYNC109
        """Return a peer's answer; raise Unreachable, Refused, TimedOut or Broken on failure."""
        self._check_may_call(peer)
        deadline = self._loop.time() + timeout
        for _ in range(_TRIES):
            link = self._usable(peer) or await self._dialled(peer, deadline)
            with suppress(Unreachable):  # the connection ended before the call was sent
                return await link.call(payload, deadline)
        raise Unreachable("connections to the peer end as soon as they begin; nothing was sent")

    def ask(
        self, peer: Peer, payload: bytes, *, timeout: float, told: OnAnswer
    ) -> Callable[[], None] | None:
        """Call over an existing connection, without a task, as `Transport.ask` defines it."""
        self._check_may_call(peer)
        link = self._usable(peer)
        if link is None:
            return None
        number = link.ask(payload, self._loop.time() + timeout, told)
        return partial(link.forget, number)

    async def close(self) -> None:
        """Let open calls finish within `drain_within` seconds, then end the rest and all tasks."""
        self._closed = True
        self._streams.stop()
        dials = list(self._dials.values())
        for dial in dials:
            dial.cancel()
        await asyncio.gather(*dials, return_exceptions=True)
        tasks = [link.task for link in self._all]
        for link in list(self._all):
            link.goodbye()
        if tasks:
            await asyncio.wait(tasks, timeout=self.limits.drain_within)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _check_may_call(self, peer: Peer) -> None:
        if self._closed:
            raise UsageError("this transport is closed; open another one to make calls")
        if peer == self.me:
            raise UsageError("a peer cannot call itself: call the handler directly")

    def _usable(self, peer: Peer) -> Link | None:
        link = self._links.get(peer)
        return link if link is not None and link.connection.asking else None

    async def _dialled(self, peer: Peer, deadline: float) -> Link:
        """Return the connection of a shared dial, which goes on even if this caller gives up."""
        dial = self._dials.get(peer)
        if self._closed:
            raise Unreachable("this transport was closed; nothing was sent")
        if dial is None:
            dial = self._dials[peer] = self._loop.create_task(self._dial(peer))
        await asyncio.wait({dial}, timeout=deadline - self._loop.time())
        if not dial.done():
            raise NoConnection("the peer did not accept a connection in time; nothing was sent")
        if dial.cancelled():
            raise Unreachable("this transport was closed; nothing was sent")
        found = dial.result()
        if isinstance(found, Link):
            return found
        raise _again(found)

    async def _dial(self, peer: Peer) -> Link | Unreachable | Refused:
        """Dial a peer; return an error, not raise it, because all callers may have given up."""
        try:
            if self._of(peer) >= self.limits.per_peer or not self._makes_place():
                return Refused(Reason.BUSY, _full(self.limits))
            async with asyncio.timeout(self.limits.dial_within):
                stream = await self._streams.dial(peer)
        except Unreachable as error:
            return error
        except TimeoutError:
            words = f"no answer for {self.limits.dial_within:g} s"
            return NoConnection(f"the peer cannot be reached: {words}")
        except OSError as error:
            return Unreachable(f"the peer cannot be reached: {error}")
        finally:
            self._dials.pop(peer, None)
        self._adopt(self._link(peer, stream, dialled=True))
        return self._links[peer]

    def _accept(self, peer: Peer, stream: ByteStream) -> None:
        """Accept a stream that a peer has opened; after its hello, it counts towards the limit."""
        if len(self._all) >= 2 * self.limits.connections:
            idler = next((one for one in self._all if one.is_idler), None)
            if idler is None:
                stream.abort()  # the others are still sending refusals
                return
            idler.task.cancel()
        per_peer = self._of(peer) < self.limits.per_peer
        link = self._link(peer, stream, dialled=False)
        if self._closed:
            link.end(Refused(Reason.LEAVING, "this peer is leaving"))
        elif not per_peer:
            link.end(Refused(Reason.BUSY, _full(self.limits)))

    def _link(self, peer: Peer, stream: ByteStream, *, dialled: bool) -> Link:
        connection = Connection(
            dialled=dialled,
            number=self._draw(),
            now=self._loop.time(),
            limits=self.limits.connection,
            room_in=self._room_in,
            room_out=self._room_out,
            greeting=self._greeting,
            door=lambda greeting: self._door(peer, greeting),
        )
        link = Link(
            peer,
            stream,
            connection,
            dialled=dialled,
            linger=self.limits.linger,
            handler=lambda: self._handler,
            greeted=self._greeted,
            over=self._over,
        )
        self._all[link] = None
        return link

    def _greeted(self, link: Link) -> None:
        if link.dialled or link.connection.over:
            return
        if self._makes_place(link):
            self._adopt(link)
        else:
            link.end(Refused(Reason.BUSY, _full(self.limits)))

    def _adopt(self, link: Link) -> None:
        """Choose a new or the existing connection for calls to the peer, and drain the other."""
        known = self._links.get(link.peer)
        if known is None or not known.connection.asking or self._replaces(link, known):
            self._links[link.peer] = link
            link.in_use = True
            if known is not None:
                known.in_use = known.connection.over
                known.goodbye()
        else:
            link.goodbye()

    def _replaces(self, link: Link, known: Link) -> bool:
        if link.since - known.since > self.limits.settled_after or link.dialled == known.dialled:
            return True
        return link.dialled == (self.me < link.peer)

    def _over(self, link: Link) -> None:
        del self._all[link]
        if self._links.get(link.peer) is link:
            del self._links[link.peer]
        if link.in_use and link.connection.error is not None and not self._closed:
            for lost in self._lost:
                lost(link.peer, link.connection.error)

    def _of(self, peer: Peer) -> int:
        return sum(link.peer == peer for link in self._all)

    def _makes_place(self, new: Link | None = None) -> bool:
        """Return whether one more connection fits, after closing another one if necessary.

        A stranger's connection is closed first, then the one that is idle for longest. An idle
        connection is never closed to admit a stranger.
        """
        others = [
            link
            for link in self._all
            if link is not new and (link.dialled or link.connection.greeted)
        ]
        if len(others) < self.limits.connections:
            return True
        if strange := [link for link in others if link.is_strange]:
            strange[0].end(Refused(Reason.BUSY, _full(self.limits)))
            return True
        idle = [link for link in self._links.values() if link.may_leave]
        if not idle or (new is not None and new.is_strange):
            return False
        min(idle, key=lambda link: link.used).goodbye()
        return True


def _again(error: Unreachable | Refused) -> Unreachable | Refused:
    """Return a copy of a dial's error, so that each caller waiting for the dial raises its own."""
    if isinstance(error, Refused):
        return Refused(error.reason, str(error))
    return type(error)(str(error))


def _full(limits: TransportLimits) -> str:
    return (
        f"{limits.connections} connections, or {limits.per_peer} of one peer, are open already;"
        " try again later"
    )
