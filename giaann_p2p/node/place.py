"""A peer's place on the real network: its p2pd, calls to others, and where those are.

Importing this takes as long as importing hivemind does.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from giaann_p2p.net.hive.config import HostConfig
from giaann_p2p.net.hive.host import Host
from giaann_p2p.net.hive.outside import outside
from giaann_p2p.net.hive.peer_id import peer_of_address
from giaann_p2p.net.hive.streams import HiveStreams
from giaann_p2p.net.streams import StreamTransport
from giaann_p2p.node.address_book import AddressBook


class Place:
    """See the module."""

    def __init__(self, host: Host, book: AddressBook, token: bytes) -> None:
        self.host, self.book, self.token = host, book, token
        self.transport = StreamTransport(HiveStreams(host, book.of), greeting=token)

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where others are told that this peer is: loopback only if there is nothing else."""
        return outside(self.host.addresses)


@asynccontextmanager
async def placed(
    key_file: Path, config: HostConfig, named: Sequence[str], token: bytes = b""
) -> AsyncIterator[Place]:
    """Be on the network for as long as this lasts.

    `named` are addresses of peers to begin with, `token` is what all others are shown.
    """
    host = await Host.start(key_file, config)
    try:
        place = Place(host, AddressBook(named, peer_of_address), token)
        try:
            yield place
        finally:
            await place.transport.close()
    finally:
        await host.close()
