"""The storage peer's process."""

import logging
from functools import partial
from pathlib import Path

from giaann_p2p.errors import UsageError
from giaann_p2p.local.status_file import READY, Status
from giaann_p2p.net.hive.board import HiveBoard
from giaann_p2p.node.acquaintances import Acquaintances
from giaann_p2p.node.clock import Clock
from giaann_p2p.node.membership import usual_folder_in
from giaann_p2p.node.place import Place
from giaann_p2p.node.storage import StorageNode
from giaann_p2p.store.budget import Budget
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.departure import hindrance
from giaann_p2p.swarm.identity import name_of
from giaann_p2p.swarm.link import Link
from giaann_p2p.swarm.manifest import Manifest
from giaann_p2p.swarm.token import Rights
from peers.command import exit_code
from peers.folder import Folder
from peers.metrics import Metrics
from peers.network import gate_of, manifest_of, network
from peers.process import Departure, last, seen
from peers.storage.command import storage
from peers.storage.metrics import metrics_of
from peers.storage.options import StorageOptions

_ON_DISK = "Nothing is lost: they stay on its disk, and it comes back with them"
_IN_MEMORY = "They are in memory alone: what no other peer has of them goes with it"


async def serve(options: StorageOptions) -> int:
    """Be a storage peer until it has left; return the exit code."""
    link = Link.read(options.join)
    path = Path(options.data_dir or usual_folder_in(link.swarm_id, "storage"))
    with Folder(path) as folder:
        known = Acquaintances(folder.known_peers)
        async with network(folder, options, link.addresses, known) as place:
            manifest = await manifest_of(folder, place, link.swarm_id)
            store = store_of(options, folder, manifest)
            try:
                renew(store, options.renewed)
                return await _serve(options, folder, place, manifest, store, known)
            finally:
                store.close()


async def _serve(
    options: StorageOptions,
    folder: Folder,
    place: Place,
    manifest: Manifest,
    store: Store,
    known: Acquaintances,
) -> int:
    clock = Clock()
    gate = gate_of(folder, place, manifest, clock, Rights.STORAGE)
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
        node = StorageNode(
            place.host.identity,
            manifest,
            store,
            place.transport,
            board,
            capacity=options.capacity_bytes,
            addresses=lambda: place.addresses,
            acquaintances=known,
            settings=options.settings(),
            clock=clock,
            gate=gate,
        )
        place.book.directory = node.lookout.others.around.directory
        metrics = Metrics(partial(metrics_of, node, store))
        async with seen(options, lambda: _status(node, place), metrics.page):
            return await last(node, _departure(options, node, store, manifest))
    finally:
        await board.close()


def _departure(
    options: StorageOptions, node: StorageNode, store: Store, manifest: Manifest
) -> Departure:
    def left() -> str:
        live = node.lookout.others.around.directory.live(node.lookout.time())
        why = hindrance(node.me, live, manifest.quorum)
        count = len(store.shards)
        return f"{count} shard{'' if count == 1 else 's'} could not be handed over yet: {why}"

    return Departure(options.leave_within, left, _IN_MEMORY if options.memory_only else _ON_DISK)


def store_of(options: StorageOptions, folder: Folder, manifest: Manifest) -> Store:
    """Open what a storage peer's folder holds, as it was told to keep it."""
    budget = Budget(options.capacity_bytes)
    if options.memory_only:
        return Store.in_memory(manifest.spec, manifest.layout, budget, retain=True)
    spare = options.remember_bytes
    spec, layout = manifest.spec, manifest.layout
    return Store.at(folder.store, spec, layout, budget=budget, retain=True, spare=spare)


def renew(store: Store, shards: list[int]) -> None:
    """Let go of what the peer's owner has told it to."""
    if wrong := [shard for shard in shards if not 0 <= shard < store.layout.shards]:
        raise UsageError(f"renew: there are shards 0 to {store.layout.shards - 1}, not {wrong[0]}")
    here = [shard for shard in shards if shard in store.shards]
    if here:
        store.drop(here)
        logging.getLogger("giaann.storage").info("dropped, to be fetched anew: shards %s", here)


def _status(node: StorageNode, place: Place) -> Status:
    state = "draining" if node.core.leaving else READY if node.ready else "syncing"
    return Status(state=state, peer=name_of(node.me), listen=place.host.config.listen[0])


def main(arguments: list[str]) -> int:
    """Run as a process of its own, and return its exit code."""
    return exit_code(storage, arguments)
