"""The bootstrap peer's process: it founds or joins a swarm, and serves it until it is ended."""

import asyncio
import ipaddress
import logging
import re
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from bootstrap.metrics import metrics_of
from bootstrap.node import BootstrapNode
from bootstrap.options import BootstrapOptions
from bootstrap.shape import without_effect
from giaann_p2p.errors import EditionError, UsageError
from giaann_p2p.local.status_file import READY, Status
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.traits import traits_of
from giaann_p2p.model.usual import new_spec
from giaann_p2p.net.hive.key_file import open_key_file
from giaann_p2p.net.hive.outside import outside
from giaann_p2p.node.members.acquaintances import Acquaintances
from giaann_p2p.node.members.membership import TokenIssuer, usual_folder
from giaann_p2p.store.cut_choice import cuts_for, named_cuts, of_nouns, spread
from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.wire.edition import Editions
from giaann_p2p.swarm.wire.link import MOST_ADDRESSES, Link
from giaann_p2p.swarm.wire.manifest import Manifest, Rules
from giaann_p2p.terminal import say
from peers.command import command, exit_code
from peers.daemon import Daemon, joined
from peers.folder import Folder
from peers.network import network
from peers.process import run

_LOG = logging.getLogger("giaann.bootstrap")
_IP = re.compile(r"/ip[46]/([^/]+)/")


async def serve(options: BootstrapOptions) -> int:
    """Run a bootstrap peer until it is ended; return the exit code."""
    if options.join:
        async with joined(options, Link.read(options.join), "bootstrap") as daemon:
            return await _serve(daemon)
    with Folder(_path(options)) as folder:
        return await _found(options, folder)


async def _found(options: BootstrapOptions, folder: Folder) -> int:
    """Found a swarm, or serve the one that was founded in this folder; return the exit code.

    Nothing is founded if the peer cannot listen, for example because its port is taken.
    """
    known = Acquaintances(folder.known_peers)
    with folder.tried() as keep:
        is_new = folder.manifest() is None
        manifest = await _founding(options, folder)
        token = _own_token(folder, manifest)
        async with network(folder, options, (), known, token) as place:
            keep()
            if is_new:
                _LOG.info("founded the swarm %r: %s", manifest.name, _shape(manifest))
            daemon = Daemon(options, folder, place, known, manifest)
            return await _serve(daemon, _resharding(options, folder))


async def _founding(options: BootstrapOptions, folder: Folder) -> Manifest:
    """Return the manifest as `_founded` does, but let a signal stop the learning of a sample."""
    if not options.cut_like:
        return _founded(options, folder)
    ended = threading.Event()

    def progress(_: int) -> None:
        if ended.is_set():
            raise UsageError("ended by a signal")  # in the thread, where it is not shown

    loop = asyncio.get_running_loop()
    founding = loop.run_in_executor(None, _founded, options, folder, progress)
    try:
        return await asyncio.shield(founding)
    except asyncio.CancelledError:
        ended.set()
        await asyncio.gather(founding, return_exceptions=True)
        raise


async def _serve(daemon: Daemon, issuer: TokenIssuer | None = None) -> int:
    async with daemon.context(_LOG.name) as context:
        node, manifest = BootstrapNode(context, issuer), daemon.manifest
        link = str(Link(manifest.swarm_id, told_to_others(daemon.place.host.addresses)))
        _LOG.info("serving the swarm %r; others join it with this link:", manifest.name)
        say(link)
        status = Status(state=READY, link=link)
        return await daemon.run(node, lambda: status, partial(metrics_of, node))


def _own_token(folder: Folder, founded: Manifest) -> bytes | None:
    """Return the token of the founder's own peer; None in an open swarm."""
    if founded.admission == "open":
        return None
    return TokenIssuer(folder.path).own(time.time()).to_bytes()


def _resharding(options: BootstrapOptions, folder: Folder) -> TokenIssuer | None:
    """Return the issuer that signs editions automatically; None if `--reshard` is off."""
    if options.reshard == "off":
        return None
    issuer = TokenIssuer(folder.path)
    if issuer.founder is None:
        raise UsageError(
            f"--reshard auto signs with the founder's key, and {folder.founder_key} is missing"
        )
    return issuer


def _path(options: BootstrapOptions) -> Path:
    """Return the data folder of a founding peer: the option, or the default for its swarm."""
    if options.data_dir:
        return Path(options.data_dir)
    return usual_folder(re.sub(r"[^\w-]", "_", options.new), "bootstrap")


def _founded(
    options: BootstrapOptions, folder: Folder, progress: Callable[[int], None] = lambda _: None
) -> Manifest:
    """Return the manifest of the swarm founded in this folder; found the swarm if there is none.

    `progress` is called after each chunk of a sample.
    """
    if (kept := folder.manifest()) is not None:
        if options.new and options.new != kept.name:
            raise UsageError(
                f"{folder.path} has founded the swarm {kept.name!r}; give another --data-dir to "
                f"found {options.new!r}"
            )
        for line in without_effect(options, kept, _rules(folder, kept)):
            _LOG.warning("%s", line)
        return kept
    if not options.new:
        raise UsageError(f"{folder.path} has founded no swarm yet: give --new NAME")
    founder = open_key_file(folder.founder_key)
    spec = new_spec(options.profile, column_segments=options.column_segments or None)
    layout = Layout(
        shards=options.shards,
        blocks=options.blocks or traits_of(spec.profile).blocks,
        sentences=options.chunk,
    )
    manifest = Manifest.founded(
        founder,
        options.new,
        spec=spec,
        layout=_cut(layout, options, spec, progress),
        replicas=options.replicas,
        quorum=options.quorum,
        redundancy=options.redundancy,
        admission="open" if options.open else "token",
        places="near",
    )
    folder.keep_manifest(manifest)
    return manifest


def _rules(folder: Folder, manifest: Manifest) -> Rules:
    """Return the swarm's rules by the edition in the folder, or else by the manifest."""
    editions = Editions(manifest)
    if edition := folder.membership.edition():
        with suppress(EditionError):  # other peers can send the edition
            editions.learn(edition)
    return editions.rules


def _cut(
    layout: Layout, options: BootstrapOptions, spec: ModelSpec, progress: Callable[[int], None]
) -> Layout:
    """Return the layout with cut columns: those in the options, or the large ones of a sample."""
    cuts = of_nouns(named_cuts(options.cut), spec)
    if options.cut_like:
        from giaann_p2p.solo.sample import sampled  # slow to import, and rarely needed

        _LOG.info("learning a part of %s, to see which columns are large", options.cut_like)
        sample = sampled(Path(options.cut_like), spec, progress)
        cuts = cuts_for(sample, layout)
        before, after = spread(sample, layout, ()), spread(sample, layout, cuts)
        _LOG.info(
            "cutting %d columns into %d parts: in this sample, the largest shard then has %.1f"
            " times the mean, and %.1f times otherwise",
            len(cuts),
            after.parts,
            after.largest,
            before.largest,
        )
    return msgspec.structs.replace(layout, cuts=cuts)


def _shape(manifest: Manifest) -> str:
    shards, replicas = manifest.layout.shards, manifest.replicas
    told = f"{shards} shards, one replica of each"
    if replicas > 1:
        told = (
            f"{shards} shards, {replicas} replicas of each, "
            f"{manifest.quorum} of them make an update count"
        )
    if columns := manifest.layout.columns:
        told += f"; {len(columns)} columns are divided by target"
    told += "; open to everybody" if manifest.admission == "open" else "; for members only"
    if manifest.redundancy > 1:
        told += f"; {manifest.redundancy} compute peers must agree on each chunk"
    return told


def told_to_others(addresses: Sequence[str]) -> tuple[str, ...]:
    """Return the addresses for a join link: public ones first, loopback only as the last resort."""
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


def start(options: BootstrapOptions) -> None:
    """Run a bootstrap peer in this process until it has left."""
    run(serve(options), options)


def main(arguments: list[str]) -> int:
    """Run `giaann bootstrap` with these arguments; return the exit code."""
    return exit_code(command(BootstrapOptions, start), arguments)
