"""Streams and connections that are of use to nobody: opened, held, fed slowly or with nonsense.

So many are held at each peer at a time, each for a while; then it is opened anew. What became of it
is counted: whether the peer ended it, or still held it when its time was up.
"""

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from giaann_p2p.net.frames import CHUNK, Kind, Sealer
from giaann_p2p.net.hive.host import Host
from giaann_p2p.net.hive.peer_id import peer_of_address, way_to
from giaann_p2p.net.hive.pipe import Pipe
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import MOST_BYTES, encode
from tests.e2e.hostile.tally import Tally

_HELD = 20.0
"""Seconds: longer than a peer waits for a hello, and for a word of who has said it."""
_OPENED_WITHIN = 5.0
_SOCKETS = 24
"""The same of connections below the streams."""
_ASKED = 400
"""Questions of who never reads an answer."""
_PAUSE = 0.2
_TCP = re.compile(r"/ip4/([\d.]+)/tcp/(\d+)/")
Use = Callable[[Pipe], Awaitable[None]]


class Flood:
    """See the module. `greeting` is what it shows for itself, `streams` how many it holds."""

    def __init__(
        self,
        host: Host,
        tally: Tally,
        greeting: bytes,
        questions: Sequence[Message],
        streams: int,
    ) -> None:
        self._host, self._tally, self._greeting = host, tally, greeting
        self._questions, self._most = questions, streams
        self._chance = random.Random(greeting)
        self._uses: dict[str, Use] = {
            "says nothing": self._nothing,
            "sends nonsense": self._nonsense,
            "sends a byte a second": self._slowly,
            "never reads": self._unread,
            "announces more than can be": self._endless,
            "sends what does not add up": self._broken,
            "begins bodies and ends none": self._halves,
        }

    async def run(self, addresses: Sequence[str]) -> None:
        """Flood these for ever."""
        async with asyncio.TaskGroup() as group:
            for address in addresses:
                for number in range(self._most):
                    group.create_task(self._streams(address, number))
                for number in range(_SOCKETS):
                    group.create_task(self._sockets(address, number))

    async def _streams(self, address: str, number: int) -> None:
        peer, way = peer_of_address(address), way_to(address)
        names = list(self._uses)
        while True:
            await asyncio.sleep(_PAUSE + self._chance.random())
            name = self._chance.choice(names)
            try:
                pipe = await self._host.open_stream(peer, [way], _OPENED_WITHIN)
            except OSError:
                self._tally["streams refused"] += 1
                continue
            self._tally[f"streams: {name}"] += 1
            await self._held(pipe, self._uses[name])

    async def _held(self, pipe: Pipe, use: Use) -> None:
        try:
            async with asyncio.timeout(_HELD):
                await use(pipe)
                while await pipe.read():
                    pass
            self._tally["streams ended by the peer"] += 1
        except TimeoutError:
            self._tally["streams held to the end"] += 1
        except OSError:
            self._tally["streams ended by the peer"] += 1
        finally:
            pipe.abort()

    async def _nothing(self, pipe: Pipe) -> None:
        await asyncio.sleep(0)

    async def _nonsense(self, pipe: Pipe) -> None:
        await pipe.write([self._chance.randbytes(1 << 12)])

    async def _slowly(self, pipe: Pipe) -> None:
        """Say hello, and then a question, a byte a second."""
        sealer = self._sealer()
        await pipe.write([sealer.hello])
        whole = b"".join(sealer.seal(Kind.REQUEST, 1, encode(self._question())))
        for at in range(len(whole)):
            await pipe.write([whole[at : at + 1]])
            await asyncio.sleep(1.0)

    async def _unread(self, pipe: Pipe) -> None:
        """Ask a great deal, and read nothing."""
        sealer = self._sealer()
        await pipe.write([sealer.hello])
        for request in range(1, 2 * _ASKED, 2):
            await pipe.write(sealer.seal(Kind.REQUEST, request, encode(self._question())))
        await asyncio.sleep(_HELD)

    async def _endless(self, pipe: Pipe) -> None:
        sealer = self._sealer()
        await pipe.write([sealer.hello])
        for request, length in ((1, MOST_BYTES + 1), (3, 1 << 40), (5, (1 << 64) - 1)):
            await pipe.write(sealer.seal(Kind.LONG, request, length.to_bytes(8, "little")))

    async def _broken(self, pipe: Pipe) -> None:
        sealer = self._sealer()
        frame = bytearray(b"".join(sealer.seal(Kind.REQUEST, 1, encode(self._question()))))
        frame[self._chance.randrange(len(frame))] ^= 1
        await pipe.write([sealer.hello, bytes(frame)])

    async def _halves(self, pipe: Pipe) -> None:
        sealer = self._sealer()
        await pipe.write([sealer.hello])
        for request in range(1, 33, 2):
            size = MOST_BYTES.to_bytes(8, "little")
            await pipe.write(sealer.seal(Kind.LONG, request, size))
            await pipe.write(sealer.seal(Kind.CHUNK, request, bytes(CHUNK)))

    async def _sockets(self, address: str, number: int) -> None:
        """Hold connections that never become any, below all that is ours."""
        found = _TCP.search(address)
        if found is None:
            return
        while True:
            await asyncio.sleep(_PAUSE + self._chance.random())
            try:
                reader, writer = await asyncio.open_connection(found[1], int(found[2]))
            except OSError:
                self._tally["connections refused"] += 1
                continue
            self._tally["connections half open"] += 1
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(_HELD):
                    if number % 3:
                        writer.write(self._chance.randbytes(number))
                    while await reader.read(1 << 12):
                        if number % 3 == 1:
                            writer.write(b"\0")
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    def _sealer(self) -> Sealer:
        return Sealer(self._chance.getrandbits(64), self._greeting)

    def _question(self) -> Message:
        return self._chance.choice(self._questions)
