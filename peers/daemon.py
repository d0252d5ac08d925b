"""The life of a daemon on its swarm's network: the same for every role."""

import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
from prometheus_client.core import Metric

from giaann_p2p.local.status_file import READY, Status
from giaann_p2p.node.members.acquaintances import Acquaintances
from giaann_p2p.node.members.context import Context
from giaann_p2p.node.members.dht_board import dht_board
from giaann_p2p.node.members.joined_host import JoinedHost
from giaann_p2p.node.members.membership import usual_folder_in
from giaann_p2p.swarm.wire.identity import name_of
from giaann_p2p.swarm.wire.link import Link
from giaann_p2p.swarm.wire.manifest import Manifest, Versions
from giaann_p2p.swarm.wire.token import Rights
from peers.folder import Folder
from peers.metrics import Metrics
from peers.network import gate_of, manifest_of, network
from peers.options import Options
from peers.process import Departure, Lasting, last, seen

NO_RIGHTS = Rights(0)
"""The rights required of a daemon that needs none, such as a bootstrap peer."""


class Daemon(NamedTuple):
    """A daemon that is on the network and has its swarm's manifest."""

    options: Options
    folder: Folder
    place: JoinedHost
    known: Acquaintances
    manifest: Manifest

    @asynccontextmanager
    async def context(self, name: str, rights: Rights = NO_RIGHTS) -> AsyncIterator[Context]:
        """Take part in the DHT board; raise TokenError if the daemon's token lacks these rights.

        `name` is the name of the node's logger.
        """
        gate = gate_of(self.folder, self.place, self.manifest, rights)
        async with dht_board(self.place, self.manifest, gate) as board:
            log = logging.getLogger(name)
            yield self.place.context(self.manifest, gate, log, board, self.known)

    async def run(
        self,
        node: Lasting,
        status: Callable[[], Status],
        read: Callable[[], Iterable[Metric]],
        departure: Departure | None = None,
    ) -> int:
        """Run a node to its end and publish its status and metrics; return the exit code."""
        host = self.place.host
        own = {"peer": name_of(host.me), "listen": host.config.listen[0]}

        def current() -> Status:
            return msgspec.structs.replace(reachable(status(), host.is_up), **own)

        async with seen(self.options, current, Metrics(read, host).page):
            return await last(node, departure)


def reachable(status: Status, is_up: bool) -> Status:
    """Return a node's status, but not as ready while its host is down: no peer can reach it."""
    if status.state != READY or is_up:
        return status
    return msgspec.structs.replace(status, state="reconnecting")


@asynccontextmanager
async def joined(
    options: Options,
    link: Link,
    role: str,
    here: Versions | None = None,
    *,
    computes: bool = False,
) -> AsyncIterator[Daemon]:
    """Join the swarm of a link, with the data folder in the options or the role's default one.

    `here` are the software versions on this machine; they must fit the swarm's manifest.
    """
    with Folder(Path(options.data_dir or usual_folder_in(link.swarm_id, role))) as folder:
        known = Acquaintances(folder.known_peers)
        async with network(folder, options, link.addresses, known) as place:
            manifest = await manifest_of(folder, place, link.swarm_id, here, computes=computes)
            yield Daemon(options, folder, place, known, manifest)
