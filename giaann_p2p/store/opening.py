"""Opens the store in some files, creating it if there is none."""

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
    """The files of a store, its identity, and its log."""

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
    """Return a store's state, and the disk that its writes go to; create the store if needed."""
    if not home.exists(files):
        deed = home.draft(files, spec or ModelSpec(), layout or Layout())
        recover(files, deed.identity)[0].close()
        home.sign(files)
    deed = home.read(files)
    _check_same(files, deed, spec, layout)
    state, log = recovered(files, deed, sync, retain, spare)
    give_back()
    return state, Disk(files, deed.identity, log)


def looked_at(files: Files, spec: ModelSpec | None, layout: Layout | None) -> StoreState:
    """Return a store's state without changing any file; NoStore if there is none."""
    if not home.exists(files):
        raise NoStore(f"there is no store in {files.path('')}")
    deed = home.read(files)
    _check_same(files, deed, spec, layout)
    return seen(files, deed)


def _check_same(
    files: Files, deed: home.Deed, spec: ModelSpec | None, layout: Layout | None
) -> None:
    if spec is not None and spec != deed.spec:
        differences = "; ".join(spec.differences(deed.spec))
        raise UsageError(f"the store in {files.path('')} has another model: {differences}")
    if layout is not None and layout != deed.layout:
        raise UsageError(f"the store in {files.path('')} has another layout: {deed.layout}")
