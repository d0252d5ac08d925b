"""The compute peer's process: it learns chunks and answers prompts until it has left."""

import logging
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial

import torch

from giaann_p2p.errors import GiaannError
from giaann_p2p.local.status_file import READY, Status
from giaann_p2p.model import device as devices
from giaann_p2p.model import english, lexicon
from giaann_p2p.model.profiles import profile_of
from giaann_p2p.node.members.context import Context
from giaann_p2p.node.members.standing_file import StandingFile
from giaann_p2p.node.reading.prompting import Prompting
from giaann_p2p.node.reading.reader import RowReader
from giaann_p2p.node.training.compute import ComputeNode
from giaann_p2p.node.training.learn_workers import LearnWorker, learn_workers
from giaann_p2p.node.training.learner import teach
from giaann_p2p.node.training.pool import Pool
from giaann_p2p.swarm.reading.row_vote import SALT_BYTES, Verify
from giaann_p2p.swarm.wire.link import Link
from giaann_p2p.swarm.wire.manifest import Versions
from giaann_p2p.swarm.wire.token import Rights
from peers.command import command, exit_code
from peers.compute.metrics import metrics_of
from peers.compute.options import ComputeOptions
from peers.daemon import Daemon, joined
from peers.process import run

_LOG = logging.getLogger("giaann.compute")


async def serve(options: ComputeOptions, workers: Sequence[LearnWorker], here: Versions) -> int:
    """Run a compute peer until it has left, end its workers, and return the exit code."""
    try:
        link, device = Link.read(options.join), devices.resolve(options.device)
        async with joined(options, link, "compute", here, computes=True) as daemon:
            manifest = daemon.manifest
            pool = Pool(workers, teach(manifest.spec, str(device)))
            try:
                return await _serve(options, daemon, pool, device)
            finally:
                await pool.close()
    finally:
        for hand in workers:
            with suppress(GiaannError, OSError):
                hand.end()


def installed() -> Versions:
    """Return the installed versions of the parser and the lexicon, which must fit the swarm's."""
    return Versions(pipelines=english.installed(), lexicon=lexicon.digest())


async def _serve(options: ComputeOptions, daemon: Daemon, pool: Pool, device: torch.device) -> int:
    async with daemon.context(_LOG.name, Rights.COMPUTE) as context:
        node = ComputeNode(
            context,
            pool,
            slots=options.chunks,
            device=_named(device),
            standing_file=StandingFile(daemon.folder.standing),
        )
        async with _prompted(options, context, node, device) as (prompting, reading):
            metrics = partial(metrics_of, node, prompting, reading)
            return await daemon.run(node, partial(_status, node), metrics)


@asynccontextmanager
async def _prompted(
    options: ComputeOptions, context: Context, node: ComputeNode, device: torch.device
) -> AsyncIterator[tuple[Prompting, RowReader]]:
    """Let a node answer prompts while the context lasts, with rows that it reads from the swarm."""
    verify = Verify(options.verify, secrets.token_bytes(SALT_BYTES))
    reading = RowReader(
        context.transport,
        context.manifest,
        node.lookout.view,
        context.clock,
        verify=verify,
        log=_LOG,
        heard=context.gate.hear,
    )
    prompting = Prompting(
        reading.rows,
        profile_of(context.manifest.spec, device),
        options.prompting(),
        frequent=reading.nouns.most,
        received=lambda: reading.calls.bytes_in,
        parts_of=reading.parts_of,
    )
    node.answering = prompting.answer
    try:
        await prompting.warm_up()
        yield prompting, reading
    finally:
        await prompting.close()
        await reading.close()


def _named(device: torch.device) -> str:
    """Return the name of a torch device for the peer's record, in at most 80 characters."""
    if device.type != "cuda":
        return str(device)
    return f"{device} ({torch.cuda.get_device_name(device)})"[:80]


def _status(node: ComputeNode) -> Status:
    return Status(state="draining" if node.leaving else READY if node.ready else "joining")


def start(options: ComputeOptions) -> None:
    """Run a compute peer in this process until it has left.

    Its workers are forked before any thread starts, and share the memory of everything loaded by
    then. That is why the parser's version is looked up first, which loads the parser.
    """
    here = installed()
    run(serve(options, learn_workers(options.processes), here), options)


def main(arguments: list[str]) -> int:
    """Run `giaann compute` with these arguments; return the exit code."""
    return exit_code(command(ComputeOptions, start), arguments)
