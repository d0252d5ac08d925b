"""A peer's place on the real network: its p2pd, its transport, and its address book."""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from giaann_p2p.net.board import Board
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

    def context(
        self,
        manifest: Manifest,
        gate: Gate,
        log: logging.Logger,
        board: Board,
        acquaintances: Acquaintances | None = None,
    ) -> Context:
        """Return the context that a node needs as a member of a swarm."""
        return Context(
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


@asynccontextmanager
async def joined_host(
    key_file: Path, config: HostConfig, named: Sequence[str], token: bytes = b""
) -> AsyncIterator[JoinedHost]:
    """Start a p2pd and join the network, for the duration of the context.

    `named` are the addresses of the first peers to contact; `token` is shown to every peer.
    """
    host = await Host.start(key_file, config)
    try:
        async with placed(host, named, token) as place:
            yield place
    finally:
        await host.close()


@asynccontextmanager
async def placed(host: Host, named: Sequence[str], token: bytes) -> AsyncIterator[JoinedHost]:
    """Join the network with a p2pd that runs already, for the duration of the context."""
    place = JoinedHost(host, AddressBook(named, peer_of_address), token)
    try:
        yield place
    finally:
        await place.transport.close()
