"""What somebody on the wire sees and can do: read nothing, change nothing, be nobody else."""

import asyncio
import re

import pytest

from giaann_p2p.errors import PeerError
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.net.hive.peer_id import libp2p_name
from giaann_p2p.net.transport import Peer
from tests.unit.net.hive.helpers import Place, echo, hosts

SECRET = b"what nobody else is to read, " * 40


class Middle:
    """Passes bytes on between two peers, keeps them, and changes one if it is told to."""

    def __init__(self, port: int) -> None:
        self.seen = bytearray()
        self.changes = False
        self._port = port
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        for one, other in ((reader, back), (there, writer)):
            task = asyncio.create_task(self._pass_on(one, other))
            self._tasks.add(task)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1 << 16):
                self.seen += data
                if self.changes:
                    self.changes = False
                    data = data[:-1] + bytes([data[-1] ^ 1])
                writer.write(data)
                await writer.drain()
        except OSError:
            pass  # one of them has closed it
        finally:
            writer.close()


def port_of(address: str) -> int:
    found = re.search(r"/tcp/(\d+)/", address)
    assert found
    return int(found[1])


def test_who_is_in_the_middle_reads_nothing_and_changes_nothing() -> None:
    async def story(place: Place) -> None:
        asker, server = [await place.host() for _ in range(2)]
        heard: list[bytes] = []

        async def note(peer: Peer, body: bytes) -> bytes:
            heard.append(body)
            return body

        middle = Middle(port_of(server.addresses[0]))
        way = f"/ip4/127.0.0.1/tcp/{await middle.start()}/p2p/{libp2p_name(server.me)}"
        place.book[server.me] = (way,)
        first, second = place.transport(asker), place.transport(server)
        second.serve(note)
        assert await first.call(server.me, SECRET, timeout=60) == SECRET
        assert len(middle.seen) > 2 * len(SECRET)
        assert SECRET[:12] not in middle.seen
        middle.changes = True
        with pytest.raises(PeerError):
            await first.call(server.me, SECRET, timeout=3)
        assert not middle.changes
        assert set(heard) == {SECRET}
        await asyncio.gather(first.close(), second.close())
        await middle.close()

    hosts(story)


def test_nobody_answers_at_anothers_address_in_its_name() -> None:
    """As when a record's address leads to another peer by now, or a stranger took the address."""

    async def story(place: Place) -> None:
        asker, liar, gone = [await place.host() for _ in range(3)]
        await gone.close()
        place.book[gone.me] = (
            liar.addresses[0].replace(libp2p_name(liar.me), libp2p_name(gone.me)),
        )
        first, second = place.transport(asker), place.transport(liar)
        second.serve(echo)
        with pytest.raises(Unreachable):
            await first.call(gone.me, SECRET, timeout=10)
        await asyncio.gather(first.close(), second.close())

    hosts(story)
