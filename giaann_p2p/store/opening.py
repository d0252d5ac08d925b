"""Opens a store from its files, for writing or for reading only."""

from dataclasses import dataclass

from giaann_p2p.errors import NoStore, UsageError
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.store import home
from giaann_p2p.store.disk.files import Files
from giaann_p2p.store.disk.log import Log
from giaann_p2p.store.disk.recover import recover
from giaann_p2p.store.disk.sync import Sync
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.memory.heap import give_back
from giaann_p2p.store.recovery import recovered, seen
from giaann_p2p.store.state import StoreState


@dataclass(frozen=True)
class Disk:
    """What a store with a disk writes to: its files, the identity in them, and its log."""

    files: Files
    identity: bytes
    log: Log


def opened(
    files: Files,
    spec: ModelSpec | None,
    layout: Layout | None,
    sync: Sync,
    retain: bool,
    spare: int,
) -> tuple[StoreState, Disk]:
    """Open a store for writing, creating it if needed; return its state and its disk.

    UsageError if the store has another model or layout than the given ones.
    """
    if not home.exists(files):
        parameters = home.draft(files, spec or ModelSpec(), layout or Layout())
        recover(files, parameters.identity)[0].close()
        home.sign(files)
    parameters = home.read(files)
    _check_same(files, parameters, spec, layout)
    state, log = recovered(files, parameters, sync, retain, spare)
    give_back()
    return state, Disk(files, parameters.identity, log)


def looked_at(files: Files, spec: ModelSpec | None, layout: Layout | None) -> StoreState:
    """Return a store's state without changing any file; NoStore if there is no store."""
    if not home.exists(files):
        raise NoStore(f"there is no store in {files.path('')}")
    parameters = home.read(files)
    _check_same(files, parameters, spec, layout)
    return seen(files, parameters)


def _check_same(
    files: Files, parameters: home.StoreParameters, spec: ModelSpec | None, layout: Layout | None
) -> None:
    if spec is not None and spec != parameters.spec:
        differences = "; ".join(spec.differences(parameters.spec))
        raise UsageError(f"the store in {files.path('')} has another model: {differences}")
    if layout is not None and layout != parameters.layout:
        raise UsageError(f"the store in {files.path('')} has another layout: {parameters.layout}")
