"""What a daemon's folder has to do with the network: its key, its ports, the manifest it knows."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from giaann_p2p.errors import UsageError
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.net.hive.config import HostConfig
from giaann_p2p.net.hive.daemon import DaemonError
from giaann_p2p.node.acquaintances import Acquaintances
from giaann_p2p.node.clock import Clock
from giaann_p2p.node.gate import Gate
from giaann_p2p.node.member import joined
from giaann_p2p.node.membership import needs
from giaann_p2p.node.place import Place, placed
from giaann_p2p.swarm.manifest import Manifest, Versions
from giaann_p2p.swarm.token import Rights
from peers.folder import Folder
from peers.options import Options

_LOG = logging.getLogger("giaann.daemon")
_AGAIN = 5.0
_MOST_AGAIN = 60.0


@asynccontextmanager
async def network(
    folder: Folder,
    options: Options,
    named: Sequence[str],
    known: Acquaintances,
    token: bytes | None = None,
) -> AsyncIterator[Place]:
    """Be on the network, where this daemon was before if it can be, as its folder's member."""
    token = _token(folder, options) if token is None else token
    last, named = folder.listen(options.listen), [*named, *known.addresses]
    async with AsyncExitStack() as stack:

        async def listening_at(listen: tuple[str, ...]) -> Place:
            entered = placed(folder.key, _config(options, listen), named, token)
            return await stack.enter_async_context(entered)

        try:
            place = await listening_at(last)
        except DaemonError as error:
            if last == options.listen:
                raise
            _LOG.warning("cannot listen where it did before, taking free ports: %s", error)
            place = await listening_at(options.listen)
        for strange in place.book.strange:
            _LOG.warning("%s", strange)
        folder.keep_listen(options.listen, place.host.config.listen)
        yield place


def _config(options: Options, listen: tuple[str, ...]) -> HostConfig:
    return HostConfig(listen=listen, announce=options.announce, auto_relay=options.relay)


def gate_of(
    folder: Folder, place: Place, manifest: Manifest, clock: Clock, rights: Rights | None = None
) -> Gate:
    """Return the gate of a daemon; TokenError if it may not be what it wants to be."""
    membership = folder.membership
    gate = Gate(manifest, place.transport, place.token, clock, membership.keep_revoked)
    gate.recall(membership.revoked())
    needs(gate.admission, place.host.me, place.token, rights or Rights(0), clock())
    return gate


def _token(folder: Folder, options: Options) -> bytes:
    membership = folder.membership
    if options.member_token:
        return membership.accept(options.member_token).to_bytes()
    token = membership.token
    return token.to_bytes() if token is not None else b""


async def manifest_of(
    folder: Folder,
    place: Place,
    swarm_id: bytes,
    here: Versions | None = None,
    *,
    computes: bool = False,
) -> Manifest:
    """Return the swarm's manifest: the one kept here, or another peer's; wait until there is one.

    UsageError if what is installed here does not fit the swarm.
    """
    here = here or Versions()
    if (kept := folder.manifest(swarm_id)) is not None:
        if differences := kept.differences(here, computes=computes):
            raise UsageError("; ".join(differences))
        return kept
    pause = _AGAIN
    while True:
        try:
            manifest = await joined(
                place.transport, place.book.peers, swarm_id, here, computes=computes
            )
        except Unreachable as error:
            _LOG.warning("%s; trying again in %g s", error, pause)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MOST_AGAIN)
        else:
            folder.keep_manifest(manifest)
            return manifest
