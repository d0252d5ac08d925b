"""A peer's place on the real network: its p2pd, its transport, and its address book.

Importing this module imports hivemind, which is slow.
"""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from giaann_p2p.net.hive.board import HiveBoard
from giaann_p2p.net.hive.config import HostConfig
from giaann_p2p.net.hive.host import Host
from giaann_p2p.net.hive.outside import outside
from giaann_p2p.net.hive.peer_id import peer_of_address
from giaann_p2p.net.hive.streams import HiveStreams
from giaann_p2p.net.streams import StreamTransport
from giaann_p2p.node.members.acquaintances import Acquaintances
from giaann_p2p.node.members.address_book import AddressBook
from giaann_p2p.node.members.context import Context
from giaann_p2p.node.members.gate import Gate
from giaann_p2p.swarm.wire.manifest import Manifest


class JoinedHost:
    """A running p2pd with a transport over it, which shows `token` to other peers."""

    def __init__(self, host: Host, book: AddressBook, token: bytes) -> None:
        self.host, self.book, self.token = host, book, token
        self.transport = StreamTransport(HiveStreams(host, book.of), greeting=token)
        host.know(self.transport.serves)

    @property
    def addresses(self) -> tuple[str, ...]:
        """Addresses to announce; loopback addresses only if there are no others."""
        return outside(self.host.addresses)

    @asynccontextmanager
    async def context(
        self,
        manifest: Manifest,
        gate: Gate,
        log: logging.Logger,
        acquaintances: Acquaintances | None = None,
    ) -> AsyncIterator[Context]:
        """Take part in a swarm's DHT board; yield the context that a node needs as a member."""
        board = await HiveBoard.start(
            self.host,
            manifest.swarm_id,
            manifest.layout,
            self.book.seeds,
            gate.clock,
            gate.admission,
            gate.token,
        )
        try:
            yield Context(
                identity=self.host.identity,
                manifest=manifest,
                transport=self.transport,
                board=board,
                gate=gate,
                clock=gate.clock,
                addresses=lambda: self.addresses,
                book=self.book,
                acquaintances=acquaintances,
                log=log,
            )
        finally:
            await board.close()


@asynccontextmanager
async def joined_host(
    key_file: Path, config: HostConfig, named: Sequence[str], token: bytes = b""
) -> AsyncIterator[JoinedHost]:
    """Start a p2pd and join the network, for the duration of the context.

    `named` are the addresses of the first peers to contact; `token` is shown to every peer.
    """
    host = await Host.start(key_file, config)
    try:
        place = JoinedHost(host, AddressBook(named, peer_of_address), token)
        try:
            yield place
        finally:
            await place.transport.close()
    finally:
        await host.close()
