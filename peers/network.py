"""Connects a daemon to the network, with the key, ports, token and manifest in its data folder."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from giaann_p2p.backoff import Backoff
from giaann_p2p.errors import UsageError
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.net.hive.config import HostConfig
from giaann_p2p.net.hive.daemon import DaemonError
from giaann_p2p.net.hive.peer_id import peer_of_address
from giaann_p2p.node.members.acquaintances import Acquaintances
from giaann_p2p.node.members.gate import Gate
from giaann_p2p.node.members.joined_host import JoinedHost, joined_host
from giaann_p2p.node.members.joining import joined
from giaann_p2p.node.members.membership import needs
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Manifest, Versions
from giaann_p2p.swarm.wire.token import Rights
from peers.folder import Folder
from peers.options import Options

_LOG = logging.getLogger("giaann.daemon")
_BACKOFF = Backoff(first=5.0, longest=60.0)
"""Pauses between attempts to get the manifest from another peer, in seconds."""
_MOST_RELAYS = 3
"""Number of relays at which a peer that cannot be dialled keeps a reservation."""
_CIRCUIT = "/p2p-circuit"
"""The part of an address that shows that the peer is reached through a relay."""


@asynccontextmanager
async def network(
    folder: Folder,
    options: Options,
    named: Sequence[str],
    known: Acquaintances,
    token: bytes | None = None,
) -> AsyncIterator[JoinedHost]:
    """Join the network with the folder's key, on the ports of the last run if they are free."""
    token = _token(folder, options) if token is None else token
    last, named = folder.listen(options.listen), [*named, *known.addresses]
    async with AsyncExitStack() as stack:

        async def listening_at(listen: tuple[str, ...]) -> JoinedHost:
            entered = joined_host(folder.key, _config(options, listen, named), named, token)
            return await stack.enter_async_context(entered)

        try:
            place = await listening_at(last)
        except DaemonError as error:
            if last == options.listen:
                raise
            _LOG.warning("the ports of the last run are taken, using free ones: %s", error)
            place = await listening_at(options.listen)
        if options.relay and not place.host.config.trusted_relays:
            _LOG.warning(
                "--relay: no known peer can relay yet; restart this peer when there is one"
            )
        for strange in place.book.strange:
            _LOG.warning("%s", strange)
        folder.keep_listen(options.listen, place.host.config.listen)
        yield place


def _config(options: Options, listen: tuple[str, ...], named: Sequence[str]) -> HostConfig:
    return HostConfig(
        listen=listen,
        announce=options.announce,
        auto_relay=options.relay,
        watch=options.watch,
        trusted_relays=relays_of(named) if options.relay else (),
    )


def relays_of(named: Sequence[str]) -> tuple[str, ...]:
    """Return an address of each of the first few peers that can be dialled without a relay."""
    found: dict[Peer, str] = {}
    for address in named:
        with suppress(UsageError):
            if _CIRCUIT not in address:
                found.setdefault(peer_of_address(address), address)
    return tuple(found.values())[:_MOST_RELAYS]


def gate_of(folder: Folder, place: JoinedHost, manifest: Manifest, rights: Rights) -> Gate:
    """Return the gate of a daemon; raise TokenError if its token lacks the rights it needs."""
    membership = folder.membership
    gate = Gate(
        manifest,
        place.transport,
        place.token,
        keep=membership.keep_revoked,
        keep_edition=membership.keep_edition,
        stores=bool(rights & Rights.STORAGE),
    )
    gate.recall(membership.revoked())
    gate.recall_edition(membership.edition())
    needs(gate.admission, place.host.me, place.token, rights, gate.clock())
    return gate


def _token(folder: Folder, options: Options) -> bytes:
    membership = folder.membership
    if options.member_token:
        return membership.accept(options.member_token).to_bytes()
    token = membership.token
    return token.to_bytes() if token is not None else b""


async def manifest_of(
    folder: Folder,
    place: JoinedHost,
    swarm_id: bytes,
    here: Versions | None = None,
    *,
    computes: bool = False,
) -> Manifest:
    """Return the swarm's manifest: from the folder, else from another peer, retrying with backoff.

    Raise UsageError if the software versions `here` do not fit the swarm.
    """
    here = here or Versions()
    if (kept := folder.manifest(swarm_id)) is not None:
        if differences := kept.differences(here, computes=computes):
            raise UsageError("; ".join(differences))
        return kept
    backoff = _BACKOFF
    while True:
        try:
            manifest = await joined(
                place.transport, place.book.peers, swarm_id, here, computes=computes
            )
        except Unreachable as error:
            backoff = backoff.failed()
            _LOG.warning("%s; trying again in %g s", error, backoff.pause)
            await asyncio.sleep(backoff.pause)
        else:
            folder.keep_manifest(manifest)
            return manifest
