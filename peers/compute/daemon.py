"""The compute peer's process."""

import logging
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import torch

from giaann_p2p.errors import GiaannError
from giaann_p2p.local.status_file import READY, Status
from giaann_p2p.model import device as devices
from giaann_p2p.model import english, lexicon
from giaann_p2p.net.hive.board import HiveBoard
from giaann_p2p.node.acquaintances import Acquaintances
from giaann_p2p.node.clock import Clock
from giaann_p2p.node.compute import ComputeNode
from giaann_p2p.node.hands import Hand
from giaann_p2p.node.lesson import teach
from giaann_p2p.node.membership import usual_folder_in
from giaann_p2p.node.place import Place
from giaann_p2p.node.pool import Pool
from giaann_p2p.node.prompting import Prompting
from giaann_p2p.node.reading import Reading
from giaann_p2p.swarm.identity import name_of
from giaann_p2p.swarm.link import Link
from giaann_p2p.swarm.manifest import Manifest, Versions
from giaann_p2p.swarm.token import Rights
from giaann_p2p.swarm.verifying import SALT_BYTES, Verify
from peers.command import exit_code
from peers.compute.command import compute
from peers.compute.metrics import metrics_of
from peers.compute.options import ComputeOptions
from peers.folder import Folder
from peers.metrics import Metrics
from peers.network import gate_of, manifest_of, network
from peers.process import last, seen


async def serve(options: ComputeOptions, hands: Sequence[Hand], here: Versions) -> int:
    """Be a compute peer until it has left, and return the exit code; the hands end with it."""
    try:
        link = Link.read(options.join)
        device = devices.resolve(options.device)
        path = Path(options.data_dir or usual_folder_in(link.swarm_id, "compute"))
        with Folder(path) as folder:
            known = Acquaintances(folder.known_peers)
            async with network(folder, options, link.addresses, known) as place:
                manifest = await manifest_of(folder, place, link.swarm_id, here, computes=True)
                pool = Pool(hands, teach(manifest.spec, manifest.layout, str(device)))
                try:
                    return await _serve(options, folder, place, manifest, pool, device, known)
                finally:
                    await pool.close()
    finally:
        for hand in hands:
            with suppress(GiaannError, OSError):
                hand.end()


def installed() -> Versions:
    """Return what is installed here that a swarm may ask for."""
    return Versions(pipelines=english.installed(), lexicon=lexicon.digest())


async def _serve(
    options: ComputeOptions,
    folder: Folder,
    place: Place,
    manifest: Manifest,
    pool: Pool,
    device: torch.device,
    known: Acquaintances,
) -> int:
    clock = Clock()
    gate = gate_of(folder, place, manifest, clock, Rights.COMPUTE)
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
        node = ComputeNode(
            place.host.identity,
            manifest,
            pool,
            place.transport,
            board,
            slots=options.chunks,
            device=_named(device),
            addresses=lambda: place.addresses,
            acquaintances=known,
            clock=clock,
            gate=gate,
        )
        place.book.directory = node.lookout.others.around.directory
        async with _prompted(options, manifest, place, node, device) as (prompting, reading):
            metrics = Metrics(partial(metrics_of, node, prompting, reading))
            async with seen(options, lambda: _status(node, place), metrics.page):
                return await last(node)
    finally:
        await board.close()


@asynccontextmanager
async def _prompted(
    options: ComputeOptions,
    manifest: Manifest,
    place: Place,
    node: ComputeNode,
    device: torch.device,
) -> AsyncIterator[tuple[Prompting, Reading]]:
    """Have a node go on from prompts, with rows of the swarm."""
    verify = Verify(options.verify, secrets.token_bytes(SALT_BYTES))
    others, log = node.lookout.others, logging.getLogger("giaann.compute")
    reading = Reading(place.transport, manifest, others, node.clock, verify=verify, log=log)
    prompting = Prompting(
        reading.rows,
        manifest.spec,
        device,
        options.prompting(),
        received=lambda: reading.calls.bytes_in,
    )
    node.answering = prompting.answer
    try:
        await prompting.warm_up()
        yield prompting, reading
    finally:
        await prompting.close()
        await reading.close()


def _named(device: torch.device) -> str:
    """Return how a device is announced."""
    if device.type != "cuda":
        return str(device)
    return f"{device} ({torch.cuda.get_device_name(device)})"[:80]


def _status(node: ComputeNode, place: Place) -> Status:
    state = "draining" if node.leaving else READY if node.ready else "joining"
    return Status(state=state, peer=name_of(node.me), listen=place.host.config.listen[0])


def main(arguments: list[str]) -> int:
    """Run as a process of its own, and return its exit code."""
    return exit_code(compute, arguments)
