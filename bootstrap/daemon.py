"""The bootstrap peer's process."""

import ipaddress
import logging
import re
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bootstrap.command import bootstrap
from bootstrap.metrics import metrics_of
from bootstrap.node import BootstrapNode
from bootstrap.options import BootstrapOptions
from giaann_p2p.errors import UsageError
from giaann_p2p.local.status_file import READY, Status
from giaann_p2p.net.hive.board import HiveBoard
from giaann_p2p.net.hive.key_file import open_key_file
from giaann_p2p.net.hive.outside import outside
from giaann_p2p.node.acquaintances import Acquaintances
from giaann_p2p.node.clock import Clock
from giaann_p2p.node.membership import Giver, usual_folder, usual_folder_in
from giaann_p2p.node.place import Place
from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.identity import name_of
from giaann_p2p.swarm.link import MOST_ADDRESSES, Link
from giaann_p2p.swarm.manifest import Manifest
from giaann_p2p.terminal import say
from peers.command import exit_code
from peers.folder import Folder
from peers.metrics import Metrics
from peers.network import gate_of, manifest_of, network
from peers.process import last, seen

_LOG = logging.getLogger("giaann.bootstrap")
_IP = re.compile(r"/ip[46]/([^/]+)/")


async def serve(options: BootstrapOptions) -> int:
    """Be a bootstrap peer until it is ended; return the exit code."""
    joined = Link.read(options.join) if options.join else None
    named = joined.addresses if joined else ()
    with Folder(_path(options, joined)) as folder:
        founded = None if joined else _founded(options, folder)
        known = Acquaintances(folder.known_peers)
        token = _own_token(folder, founded)
        async with network(folder, options, named, known, token) as place:
            manifest = founded or await manifest_of(folder, place, Link.read(options.join).swarm_id)
            return await _serve(options, folder, place, manifest, known)


async def _serve(
    options: BootstrapOptions,
    folder: Folder,
    place: Place,
    manifest: Manifest,
    known: Acquaintances,
) -> int:
    clock = Clock()
    gate = gate_of(folder, place, manifest, clock)
    board = await HiveBoard.start(
        place.host,
        manifest.swarm_id,
        manifest.layout,
        place.book.seeds,
        clock,
        gate.admission,
        gate.token,
    )
    try:
        node = BootstrapNode(place.host.me, manifest, place.transport, board, known, clock, gate)
        place.book.directory = node.lookout.others.around.directory
        link = str(Link(manifest.swarm_id, told_to_others(place.host.addresses)))
        _LOG.info("serving the swarm %r; others join it with this link:", manifest.name)
        say(link)
        status = Status(
            state=READY, link=link, peer=name_of(place.host.me), listen=place.host.config.listen[0]
        )
        async with seen(options, lambda: status, Metrics(partial(metrics_of, node)).page):
            return await last(node)
    finally:
        await board.close()


def _own_token(folder: Folder, founded: Manifest | None) -> bytes | None:
    """Return the token of the founder's own peer; None for another's, which was given one."""
    if founded is None or founded.admission == "open":
        return None
    return Giver(folder.path).own(time.time()).to_bytes()


def _path(options: BootstrapOptions, joined: Link | None) -> Path:
    if options.data_dir:
        return Path(options.data_dir)
    if joined:
        return usual_folder_in(joined.swarm_id, "bootstrap")
    if not options.new:
        raise UsageError("give --new NAME to found a swarm, or --join LINK to serve one")
    return usual_folder(re.sub(r"[^\w-]", "_", options.new), "bootstrap")


def _founded(options: BootstrapOptions, folder: Folder) -> Manifest:
    """Return the manifest of the swarm that this folder has founded, now or before."""
    if (kept := folder.manifest()) is not None:
        if options.new and options.new != kept.name:
            raise UsageError(
                f"{folder.path} has founded the swarm {kept.name!r}; give another --data-dir to "
                f"found {options.new!r}"
            )
        return kept
    if not options.new:
        raise UsageError(f"{folder.path} has founded no swarm yet: give --new NAME")
    founder = open_key_file(folder.founder_key)
    manifest = Manifest.founded(
        founder,
        options.new,
        layout=Layout(shards=options.shards, blocks=options.blocks),
        replicas=options.replicas,
        quorum=options.quorum,
        redundancy=options.redundancy,
        admission="token" if options.token else "open",
    )
    folder.keep_manifest(manifest)
    _LOG.info("founded the swarm %r: %s", manifest.name, _shape(manifest))
    return manifest


def _shape(manifest: Manifest) -> str:
    shards, replicas = manifest.layout.shards, manifest.replicas
    told = f"{shards} shards, one replica of each"
    if replicas > 1:
        told = (
            f"{shards} shards, {replicas} replicas of each, "
            f"{manifest.quorum} of them make an update count"
        )
    if manifest.redundancy > 1:
        told += f"; {manifest.redundancy} compute peers have to come to the same"
    return told


def told_to_others(addresses: Sequence[str]) -> tuple[str, ...]:
    """Return which addresses a link names: public ones first, loopback only if need be."""
    chosen = outside(addresses)
    if not chosen:
        raise UsageError("this peer has no address that others could dial: give --listen")
    return tuple(sorted(chosen, key=_is_private)[:MOST_ADDRESSES])


def _is_private(address: str) -> bool:
    found = _IP.match(address)
    try:
        return ipaddress.ip_address(found[1]).is_private if found else False
    except ValueError:
        return False


def main(arguments: list[str]) -> int:
    """Run as a process of its own, and return its exit code."""
    return exit_code(bootstrap, arguments)
