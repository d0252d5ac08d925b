"""The storage peer's process: it opens the store, and serves it until it has left."""

import logging
from contextlib import suppress
from functools import partial
from shutil import disk_usage

from giaann_p2p.errors import StoreError, UsageError
from giaann_p2p.local.status_file import READY, Status
from giaann_p2p.machine import available_memory
from giaann_p2p.node.replication.opening import opened
from giaann_p2p.node.replication.storage import StorageNode, divide
from giaann_p2p.store.budget import Budget
from giaann_p2p.store.disk.files import DiskFiles
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.store.shards_on_disk import shards_on_disk
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.members.departure import Decision, decided, hindrance
from giaann_p2p.swarm.wire.link import Link
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.record import Announcement
from giaann_p2p.swarm.wire.token import Rights
from giaann_p2p.units import readable_bytes
from peers.command import command, exit_code
from peers.daemon import joined
from peers.folder import Folder
from peers.process import Departure, run
from peers.storage.cost import costs
from peers.storage.metrics import metrics_of
from peers.storage.options import StorageOptions

_LOG = logging.getLogger("giaann.storage")
_MOST_NAMED = 8
_IN_MEMORY = "They are in memory only: content that no other peer has is lost with this peer"


async def serve(options: StorageOptions) -> int:
    """Run a storage peer until it has left; return the exit code."""
    async with joined(options, Link.read(options.join), "storage") as daemon:
        path = daemon.folder.path
        for cost in costs(options, path, available_memory(), disk_usage(path).free):
            _LOG.info("%s", cost)
        async with daemon.context(_LOG.name, Rights.STORAGE) as context:
            shards, folder = context.gate.rules().shards, daemon.folder
            open_store = partial(prepared, options, folder, daemon.manifest, shards)
            here = partial(listed, folder)
            with await opened(context, options.capacity_bytes, open_store, here) as store:
                capacity, settings = options.capacity_bytes, options.settings()
                node = StorageNode(context, store, capacity=capacity, settings=settings)
                departure = _departure(options, daemon.folder, node, store, daemon.manifest)
                metrics = partial(metrics_of, node, store)
                return await daemon.run(node, partial(_status, node), metrics, departure)


def _departure(
    options: StorageOptions,
    folder: Folder,
    node: StorageNode,
    store: Store,
    manifest: Manifest,
) -> Departure:
    def live() -> list[Announcement]:
        return node.lookout.view.directory.live(node.lookout.time())

    def left() -> str:
        count = len(store.shards)
        which = "1 shard is" if count == 1 else f"{count} shards are"
        quorum = node.gate.rules().quorum
        return f"{which} not handed over: {hindrance(node.me, live(), quorum)}"

    def kept() -> str:
        if options.memory_only:
            return _IN_MEMORY
        where = f"{folder.store} ({readable_bytes(folder.store_bytes)})"
        return f"Nothing is lost: they stay in {where}, and the same command brings them back"

    def decision() -> Decision:
        return decided(node.me, live(), node.taught, durable=not options.memory_only)

    return Departure(options.leave_within, left, kept, decision, node.go)


def store_of(options: StorageOptions, folder: Folder, manifest: Manifest) -> Store:
    """Open a storage peer's store: in memory only if the options say so, else in its folder."""
    budget = Budget(options.capacity_bytes)
    if options.memory_only:
        return Store.in_memory(manifest.spec, manifest.layout, budget, retain=True)
    spare = options.remember_bytes
    spec, layout = manifest.spec, manifest.layout
    store = Store.at(folder.store, spec, layout, budget=budget, retain=True, spare=spare)
    if store.cold.damaged:
        _LOG.warning("%s", _damage(store.cold.damaged, folder))
    return store


def prepared(options: StorageOptions, folder: Folder, manifest: Manifest, shards: int) -> Store:
    """Open the store, divide it into the swarm's present `shards`, and drop those to be renewed."""
    store = store_of(options, folder, manifest)
    try:
        divide(store, shards)
        renew(store, options.renewed)
    except BaseException:
        store.close()
        raise
    with suppress(OSError):  # if the file stays, the next opening is not announced
        folder.opening.unlink(missing_ok=True)
    return store


def listed(folder: Folder) -> tuple[Shards, Layout]:
    """Return the shards in a store that is being opened, so that they can be announced.

    StoreError if the previous opening did not end, because the peer was killed or the store is
    damaged: otherwise a peer that never succeeds in opening it would own its shards for ever.
    """
    if folder.opening.exists():
        raise StoreError("its store could not be opened the last time")
    folder.opening.touch()  # before `prepared` ends, which removes the file
    return shards_on_disk(DiskFiles(folder.store))


def _damage(names: list[str], folder: Folder) -> str:
    """Return a warning that names the unreadable cold copies, and what to do about them."""
    many = "1 cold copy" if len(names) == 1 else f"{len(names)} cold copies"
    which = ", ".join(names[:_MOST_NAMED]) + (", ..." if names[_MOST_NAMED:] else "")
    return (
        f"{many} in {folder.store} cannot be read, and will not be used: {which}. The disk has"
        " lost data: check it. Once `giaann fsck --join LINK` shows that other peers"
        " serve these shards, remove the files"
    )


def renew(store: Store, shards: list[int]) -> None:
    """Drop the shards that the operator named with --renew, with their cold copies."""
    if wrong := [shard for shard in shards if not 0 <= shard < store.layout.shards]:
        last = store.layout.shards - 1
        raise UsageError(f"--renew: the swarm has shards 0 to {last}, and no shard {wrong[0]}")
    here = [shard for shard in shards if shard in store.shards or shard in store.cold.copies]
    if here:
        store.drop(here)
        store.cold.forget(here)
        _LOG.info("dropped for --renew, and fetched again later: shards %s", here)


def _status(node: StorageNode) -> Status:
    state = "draining" if node.core.leaving else READY if node.ready else "syncing"
    return Status(state=state, note=node.room.level)


def start(options: StorageOptions) -> None:
    """Run a storage peer in this process until it has left."""
    run(serve(options), options)


def main(arguments: list[str]) -> int:
    """Run `giaann storage` with these arguments; return the exit code."""
    return exit_code(command(StorageOptions, start), arguments)
