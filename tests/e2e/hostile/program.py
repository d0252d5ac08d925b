"""How a hostile peer runs that is no daemon: its place on the network, its signals, its end."""

import argparse
import asyncio
import logging
import os
import signal
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec
import uvloop

from giaann_p2p.client.launch import ANYWHERE
from giaann_p2p.local.status_file import READY, Status, StatusFile
from giaann_p2p.net.hive.key_file import open_key_file
from giaann_p2p.net.hive.peer_id import libp2p_name
from giaann_p2p.node.members.joined_host import JoinedHost, joined_host
from giaann_p2p.node.members.joining import joined
from giaann_p2p.node.members.membership import Membership
from giaann_p2p.swarm.wire.identity import name_of
from giaann_p2p.swarm.wire.link import Link
from giaann_p2p.swarm.wire.manifest import Manifest, Versions
from tests.e2e.hostile import BEGIN
from tests.e2e.hostile.tally import Tally


class Program(Protocol):
    """What a hostile peer does."""

    def __init__(
        self, place: JoinedHost, manifest: Manifest, tally: Tally, folder: Path
    ) -> None: ...

    async def run(self, begun: asyncio.Event) -> None:
        """Seem honest until it is to begin, then do harm for ever."""
        ...


def run(kind: type[Program], folder: Path, arguments: list[str]) -> int:
    """Be a hostile peer until it is ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--join", type=Link.read)
    parser.add_argument("--status-file", type=Path)
    told, _ = parser.parse_known_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    uvloop.run(_guarded(_lived(kind, folder, told.join, StatusFile(told.status_file))))
    return 0


def addresses_beside(folder: Path) -> list[str]:
    """Return where all peers of a swarm on this machine are: as who was a member once may know."""
    found = []
    for file in sorted(folder.parents[1].glob("*/status.json")):
        with suppress(OSError, ValueError):
            listen = _listen_of(file)
            peer = open_key_file(file.parent / "data" / "peer.key").peer
            found += [f"{listen}/p2p/{libp2p_name(peer)}"] if listen else []
    return found


def _listen_of(file: Path) -> str:
    return msgspec.json.decode(file.read_bytes(), type=Status).listen


async def _guarded(life: Coroutine[None, None, None]) -> None:
    task = asyncio.ensure_future(life)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    with suppress(asyncio.CancelledError):
        await task


async def _lived(kind: type[Program], folder: Path, link: Link, file: StatusFile) -> None:
    begun = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(BEGIN, begun.set)
    token = Membership(folder).token
    shown = token.to_bytes() if token is not None else b""
    async with joined_host(folder / "peer.key", ANYWHERE, link.addresses, shown) as place:
        manifest = await joined(place.transport, place.book.peers, link.swarm_id, Versions())
        tally = Tally(folder)
        program = kind(place, manifest, tally, folder)
        listen = place.host.config.listen[0]
        file.write(Status(state=READY, pid=os.getpid(), peer=name_of(place.host.me), listen=listen))
        async with asyncio.TaskGroup() as group:
            group.create_task(tally.keep())
            group.create_task(program.run(begun))
