"""What a stranger sends to one p2pd, for each of libp2p's protocols that it answers.

Each flood runs until it is cancelled. It needs no token and no name, only the address: a stranger
comes with a new key whenever it likes.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.benchmarks.p2pd_flood.connection import Connection, varint
from tests.benchmarks.p2pd_flood.noise import KEY_HEAD, raw_public

KAD, PING, IDENTIFY, PUSH = (
    "/ipfs/kad/1.0.0",
    "/ipfs/ping/1.0.0",
    "/ipfs/id/1.0.0",
    "/ipfs/id/push/1.0.0",
)
HOP, STOP = "/libp2p/circuit/relay/0.2.0/hop", "/libp2p/circuit/relay/0.2.0/stop"
AUTONAT, HOLES, FRAMES = "/libp2p/autonat/1.0.0", "/libp2p/dcutr", "/giaann/frames/1"
_AT_ONCE = 8
"""Tasks of one flood."""
_ADDRESSES = 300
_PUSHED = 100
"""Addresses of a pushed identity: more do not fit into what p2pd reads of one."""
_HELD = 4000
"""Connections that are held at a time, half open ones as well."""
_STREAMS = 20_000
"""Streams of one connection that are held."""
_FULL = 1 << 18
_BREATH = 0.01
Flood = Callable[[str, int], Awaitable[None]]


def field(number: int, value: bytes | int) -> bytes:
    """Return a field of protobuf."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def message(*fields: bytes) -> bytes:
    """Return a message of protobuf behind its length."""
    whole = b"".join(fields)
    return varint(len(whole)) + whole


def address() -> bytes:
    """Return a made-up address of loopback, packed: /ip4/127.x.y.z/tcp/p."""
    return b"\x04\x7f" + os.urandom(3) + b"\x06" + os.urandom(2)


def name(connection: Connection) -> bytes:
    """Return the libp2p id that a connection has proved to be."""
    return b"\x00\x24" + KEY_HEAD + raw_public(connection.identity)


async def providers(host: str, port: int) -> None:
    """Name oneself as the provider of ever new keys, with many addresses."""

    async def use(connection: Connection) -> None:
        stream = await connection.open(KAD)
        while connection.is_open:
            told = [field(2, address()) for _ in range(_ADDRESSES)]
            provider = field(1, name(connection)) + b"".join(told)
            key = field(2, b"\x12\x20" + os.urandom(32))
            await _written(connection, stream, message(field(1, 2), key, field(9, provider)))

    await _each(use, host, port)


async def questions(host: str, port: int) -> None:
    """Ask libp2p's DHT for peers, on ever new streams whose answers nobody reads."""
    await _each(_opening(KAD, lambda: message(field(1, 4), field(2, os.urandom(32)))), host, port)


async def pings(host: str, port: int) -> None:
    """Fill the windows of many streams with pings, and read no answer."""
    await _each(_opening(PING, lambda: bytes(_FULL)), host, port)


async def identities(host: str, port: int) -> None:
    """Ask who it is, over and over."""
    await _each(_opening(IDENTIFY, bytes), host, port)


async def pushes(host: str, port: int) -> None:
    """Come as ever new peers, each with as many addresses as an identity can have."""

    async def use(connection: Connection) -> None:
        told = [field(2, address()) for _ in range(_PUSHED)]
        spoken = [field(3, b"/" + os.urandom(20).hex().encode()) for _ in range(100)]
        key = field(1, KEY_HEAD + raw_public(connection.identity))
        stream = await connection.open(PUSH, message(key, *told, *spoken))
        await connection.finish(stream)
        await asyncio.sleep(0.05)

    await _each(use, host, port)


async def relaying(host: str, port: int) -> None:
    """Reserve a relay, and have others connect through it to who reads nothing."""
    goal = await Connection.dialled(host, port)
    with suppress(OSError):
        await goal.open(HOP, message(field(1, 0)), read=True)

    async def use(connection: Connection) -> None:
        await connection.open(HOP, message(field(1, 0)))
        ask = message(field(1, 1), field(2, field(1, name(goal))))
        for _ in range(_STREAMS):
            await connection.open(HOP, ask + bytes(_FULL))
            await asyncio.sleep(_BREATH)

    await _each(use, host, port)


async def reachability(host: str, port: int) -> None:
    """Have it dial addresses, as who wants to know whether it can be reached."""

    def ask() -> bytes:
        told = b"".join(field(2, address()) for _ in range(_ADDRESSES))
        return message(field(1, 0), field(2, field(1, told)))

    await _each(_opening(AUTONAT, ask), host, port)


async def holes(host: str, port: int) -> None:
    """Ask for holes to be punched, though nothing is in the way."""
    told = b"".join(field(2, address()) for _ in range(_ADDRESSES))
    await _each(_opening(HOLES, lambda: message(field(1, 100), told)), host, port)


async def frames(host: str, port: int) -> None:
    """Open the streams of a swarm's peers, and send nonsense."""
    await _each(_opening(FRAMES, lambda: os.urandom(1 << 12)), host, port)


async def silence(host: str, port: int) -> None:
    """Open streams for nothing, and leave them."""
    await _each(_opening("", bytes), host, port)


async def peers(host: str, port: int) -> None:
    """Come as ever new peers, and hold the connections."""
    held: list[Connection] = []

    async def use(connection: Connection) -> None:
        await connection.open(PING, bytes(32))
        held.append(connection)
        while len(held) > _HELD:
            await held.pop(0).close()

    await _each(use, host, port, close=False)


async def sockets(host: str, port: int) -> None:
    """Hold connections that never become any."""
    held: list[asyncio.StreamWriter] = []

    async def come() -> None:
        while True:
            with suppress(OSError):
                _, writer = await asyncio.open_connection(host, port)
                writer.write(b"\x13")
                held.append(writer)
            while len(held) > _HELD:
                held.pop(0).close()
            await asyncio.sleep(_BREATH)

    await asyncio.gather(*[come() for _ in range(_AT_ONCE)])


def _opening(protocol: str, data: Callable[[], bytes]) -> Callable[[Connection], Awaitable[None]]:
    """Open streams for ever, each with some data; read nothing."""

    async def use(connection: Connection) -> None:
        for number in range(_STREAMS):
            if not connection.is_open:
                return
            await connection.open(protocol, data())
            if not number % 100:
                await asyncio.sleep(_BREATH)

    return use


async def _each(
    use: Callable[[Connection], Awaitable[None]], host: str, port: int, *, close: bool = True
) -> None:
    """Use connections of strangers for ever, some at a time, each a new peer."""

    async def come() -> None:
        while True:
            try:
                connection = await Connection.dialled(host, port, Ed25519PrivateKey.generate())
            except OSError:
                await asyncio.sleep(0.1)
                continue
            with suppress(OSError):
                await use(connection)
            if close:
                await connection.close()

    await asyncio.gather(*[come() for _ in range(_AT_ONCE)])


async def _written(connection: Connection, stream: int, data: bytes) -> None:
    """Write all of it, as the other side makes room."""
    while data and connection.is_open:
        room = connection.window(stream)
        await connection.write(stream, data[:room])
        data = data[room:]
        if data:
            await asyncio.sleep(_BREATH)


FLOODS: dict[str, Flood] = {
    "providers": providers,
    "questions": questions,
    "pings": pings,
    "identities": identities,
    "pushes": pushes,
    "relaying": relaying,
    "reachability": reachability,
    "holes": holes,
    "frames": frames,
    "silence": silence,
    "peers": peers,
    "sockets": sockets,
}
