"""In-memory byte streams between peers of one process, with fault injection.

These streams are for the virtual-time loop of clock.py: two runs with the same seed are identical
to the last byte. Faults can be set at any time, per direction from one peer to another: see `Way`
and the methods of `Network`. As with TCP, a stream keeps its bytes complete and in order until it
breaks.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from giaann_p2p.net.frames import Buffer
from giaann_p2p.net.transport import ByteStream
from giaann_p2p.swarm.wire.identity import Peer

CAPACITY = 1 << 18
"""The number of bytes in flight or unread in one direction of a stream at which a writer has to
wait."""
_SEGMENT = 1 << 16
"""The most bytes of a segment, the unit in which bytes are delayed and delivered."""
_PATIENCE = 0.5  # seconds between two tries of a dial without an answer

_END = b""
_RESET = None


class Way(msgspec.Struct, kw_only=True):
    """The properties of the network from one peer to another; may be changed at any time."""

    latency: tuple[float, float] = (0.0, 0.0)
    """The minimum and maximum seconds of delay, drawn for each segment."""
    bandwidth: float = 0.0
    """The bandwidth in bytes per second, shared by all streams of this direction; 0 means
    unlimited."""
    blocked: bool = False
    """Whether nothing arrives, not even the end of a stream, until the direction is unblocked. This
    models a cut line or a stopped process."""
    dials: bool = True
    """Whether dials get an answer; if not, they wait for ever."""
    doubled: float = 0.0
    """The probability that one dial opens two streams at the other side; the second one stays
    silent."""


class Network:
    """The simulated network of peers in one process; `chance` draws delays and segment sizes."""

    def __init__(self, chance: random.Random, note: Callable[[str], None] | None = None) -> None:
        self._chance = chance
        self._note = note or (lambda what: None)
        self._ways: dict[tuple[Peer, Peer], Way] = {}
        self._free: dict[tuple[Peer, Peer], float] = {}  # when each direction is free again
        self._listening: dict[Peer, Callable[[Peer, ByteStream], None]] = {}
        self._pipes: dict[_Pipe, None] = {}  # pipes that may still deliver

    def __repr__(self) -> str:
        return f"<Network: {len(self._listening)} peers listen, {self.streams} streams>"

    @property
    def streams(self) -> int:
        """The number of streams that are open on at least one side."""
        return len({frozenset((id(pipe), id(pipe.back))) for pipe in self._pipes})

    def node(self, peer: Peer) -> "Node":
        """Return the interface by which one peer uses this network."""
        return Node(self, peer)

    # Faults.

    def way(self, source: Peer, target: Peer) -> Way:
        """Return the settings of one direction, which may be changed; use `block` to block it."""
        return self._ways.setdefault((source, target), Way())

    def block(self, source: Peer, target: Peer, blocked: bool = True) -> None:
        """Block the direction from one peer to another, or unblock it."""
        self._say("block" if blocked else "open", source, target)
        self.way(source, target).blocked = blocked
        for pipe in self._between(source, target):
            pipe.arm()

    def freeze(self, peer: Peer, others: Sequence[Peer], frozen: bool = True) -> None:
        """Make a peer look stopped to some others without closing any stream, or resume it."""
        for other in others:
            self.block(peer, other, frozen)
            self.block(other, peer, frozen)

    def reset(self, one: Peer, other: Peer) -> None:
        """Break all streams between two peers; both sides get an error."""
        self._say("reset", one, other)
        for pipe in [*self._between(one, other), *self._between(other, one)]:
            pipe.break_off()

    def end(self, source: Peer, target: Peer) -> None:
        """End all streams from one peer to another early, as if the sender had closed them."""
        self._say("end", source, target)
        for pipe in self._between(source, target):
            pipe.cut_short()

    # Operation.

    async def dial(self, source: Peer, target: Peer) -> "Stream":
        """Open a stream between two peers, once both directions are open and dials are answered."""
        there, back = self.way(source, target), self.way(target, source)
        await asyncio.sleep(self.delay(there))
        while there.blocked or back.blocked or not there.dials:  # noqa: ASYNC110  (TCP retries, too)
            await asyncio.sleep(_PATIENCE)
        stream = self._connect(source, target)
        if self._chance.random() < there.doubled:
            self._connect(source, target)
        try:
            await asyncio.sleep(self.delay(back))
        except asyncio.CancelledError:
            stream.abort()
            raise
        return stream

    def listen(self, peer: Peer, accept: Callable[[Peer, ByteStream], None]) -> None:
        """Pass each stream that others open to a peer to a callback."""
        self._listening[peer] = accept

    def stop(self, peer: Peer) -> None:
        """Refuse further dials to a peer."""
        self._listening.pop(peer, None)

    def delay(self, way: Way) -> float:
        """Draw the delay of one segment or dial, in seconds."""
        return self._chance.uniform(*way.latency)

    def arrival(self, pipe: "_Pipe", size: int) -> float:
        """Return the time at which `size` bytes sent now arrive."""
        ends = (pipe.source, pipe.target)
        way, now = self.way(*ends), asyncio.get_running_loop().time()
        sent = max(now, self._free.get(ends, 0.0))
        if way.bandwidth:
            sent += size / way.bandwidth
            self._free[ends] = sent
        return sent + self.delay(way)

    def segment(self) -> int:
        """Draw the size of the next segment in bytes."""
        return self._chance.randint(1, _SEGMENT)

    def delivered(self, pipe: "_Pipe", what: str) -> None:
        """Report an arrival to the network's `note` callback."""
        self._say(what, pipe.source, pipe.target)

    def forget(self, pipe: "_Pipe") -> None:
        """Forget a pipe that will deliver nothing more."""
        self._pipes.pop(pipe, None)

    def _connect(self, source: Peer, target: Peer) -> "Stream":
        accept = self._listening.get(target)
        self._say("dial", source, target)
        if accept is None:
            raise ConnectionRefusedError("nobody listens there")
        there, back = _Pipe(self, source, target), _Pipe(self, target, source)
        there.back, back.back = back, there
        self._pipes[there] = self._pipes[back] = None
        accept(source, Stream(back, there))
        return Stream(there, back)

    def _between(self, source: Peer, target: Peer) -> "list[_Pipe]":
        ends = (source, target)
        return [pipe for pipe in self._pipes if (pipe.source, pipe.target) == ends]

    def _say(self, what: str, source: Peer, target: Peer) -> None:
        now = asyncio.get_running_loop().time()
        self._note(f"{now:.6f} {what} {source[:4].hex()} {target[:4].hex()}")


class Node:
    """One peer's access to a simulated network."""

    def __init__(self, network: Network, me: Peer) -> None:
        self.network = network
        self.me = me

    async def dial(self, peer: Peer) -> ByteStream:
        """Open a stream to another peer."""
        return await self.network.dial(self.me, peer)

    def listen(self, accept: Callable[[Peer, ByteStream], None]) -> None:
        """Pass each stream that another peer opens to a callback."""
        self.network.listen(self.me, accept)

    def stop(self) -> None:
        """Accept no more streams from other peers."""
        self.network.stop(self.me)


class Stream:
    """One side of an in-memory stream."""

    def __init__(self, outgoing: "_Pipe", incoming: "_Pipe") -> None:
        self._outgoing = outgoing
        self._incoming = incoming

    async def read(self) -> bytes:
        """Return the bytes that have arrived; return b"" at the end of the stream."""
        return await self._incoming.read()

    def deliver(self, to: Callable[[bytes], None]) -> None:
        """Pass incoming bytes to a callback from now on."""
        self._incoming.deliver_to = to

    async def write(self, pieces: Sequence[Buffer]) -> None:
        """Send some pieces in order; return when all of them are in flight."""
        await self._outgoing.write(b"".join(pieces))

    @property
    def room(self) -> bool:
        """Whether `write` would return without waiting."""
        return self._outgoing.room

    def put(self, pieces: Sequence[Buffer]) -> None:
        """Send some pieces at once, without waiting."""
        self._outgoing.put(b"".join(pieces))

    def close(self) -> None:
        """Close the stream once everything that was sent has arrived; nothing more is read."""
        self._outgoing.send(_END)
        self._incoming.deafen()

    def abort(self) -> None:
        """Reset the stream at once, in both directions."""
        self._outgoing.send(_RESET)
        self._outgoing.shut()
        self._incoming.deafen()


class _Pipe:
    """One direction of an in-memory stream."""

    back: "_Pipe"

    def __init__(self, network: Network, source: Peer, target: Peer) -> None:
        self.source = source
        self.target = target
        self._network = network
        # Arrival time and bytes of each segment; a segment never arrives before an earlier one.
        self._flying: deque[tuple[float, bytes | None]] = deque()
        self._arrived: deque[bytes] = deque()
        self._size = 0  # bytes in flight and arrived
        self._ended = False  # the reader has reached the end
        self._deaf = False  # nobody reads any more
        self._shut = False  # nobody can write any more
        self._changed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self.deliver_to: Callable[[bytes], None] | None = None

    async def read(self) -> bytes:
        while not self._arrived:
            if self._deaf:
                raise ConnectionResetError("reset by the other side")
            if self._ended:
                return b""
            self._changed.clear()
            await self._changed.wait()
        data = self._arrived.popleft()
        self._size -= len(data)
        self._changed.set()
        return data

    async def write(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            while self._size >= CAPACITY and not self._shut and not self._deaf:
                self._changed.clear()
                await self._changed.wait()
            if self._shut or self._deaf:
                raise ConnectionResetError("reset by the other side")
            size = self._network.segment()
            self.send(data[at : at + size])
            at += size

    @property
    def room(self) -> bool:
        return self._size < CAPACITY

    def put(self, data: bytes) -> None:
        if self._shut or self._deaf:
            raise ConnectionResetError("reset by the other side")
        at = 0
        while at < len(data):
            size = self._network.segment()
            self.send(data[at : at + size])
            at += size

    def send(self, segment: bytes | None) -> None:
        if self._shut or self._ended:
            return
        size = len(segment or b"")
        self._flying.append((self._network.arrival(self, size), segment))
        self._size += size
        self.arm()

    def arm(self) -> None:
        """Schedule the delivery of the next segment in flight, unless the direction is blocked."""
        way = self._network.way(self.source, self.target)
        if self._timer is None and self._flying and not way.blocked:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(loop.time(), self._flying[0][0]), self._deliver)

    def _deliver(self) -> None:
        self._timer = None
        if self._network.way(self.source, self.target).blocked or not self._flying:
            return
        _, segment = self._flying.popleft()
        if segment is _RESET:
            self._network.delivered(self, "reset")
            self.deafen()
            self.back.shut()
        elif segment == _END:
            self._network.delivered(self, "end")
            self._finish()
        else:
            self._network.delivered(self, f"{len(segment)} bytes")
            if not self._deaf and self.deliver_to is not None and not self._arrived:
                self._size -= len(segment)
                self.deliver_to(segment)
            elif not self._deaf:
                self._arrived.append(segment)
        self._changed.set()
        self.arm()
        if self._deaf and not self._flying:
            self._network.forget(self)

    def break_off(self) -> None:
        """Break this direction of a stream: its reader and its writer get an error."""
        self.deafen()
        self.shut()

    def cut_short(self) -> None:
        """Make the reader see an end now; segments in flight and later writes are lost."""
        self._flying.clear()
        self._size = sum(map(len, self._arrived))
        self._finish()

    def deafen(self) -> None:
        """Stop reading from this pipe, and drop what has arrived."""
        self._deaf = True
        self._arrived.clear()
        self._size = 0
        self._changed.set()
        if not self._flying:
            self._network.forget(self)

    def shut(self) -> None:
        """Stop writing to this pipe; later writes fail."""
        self._shut = True
        self._changed.set()

    def _finish(self) -> None:
        self._ended = True
        self._changed.set()
        self._network.forget(self)
