"""Opening the store that lies in some files; making it, if there is none."""

from dataclasses import dataclass

from giaann_p2p.errors import StoreError, UsageError
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.store import home
from giaann_p2p.store.disk.files import Files
from giaann_p2p.store.disk.log import Log
from giaann_p2p.store.disk.recover import recover
from giaann_p2p.store.disk.sync import Sync
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.memory.heap import give_back
from giaann_p2p.store.recovery import recovered, seen
from giaann_p2p.store.state import State


@dataclass(frozen=True)
class Disk:
    """Where a store keeps its files."""

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
) -> tuple[State, Disk]:
    """Return what a store holds, and where what it will take in goes."""
    if not home.exists(files):
        deed = home.draft(files, spec or ModelSpec(), layout or Layout())
        recover(files, deed.identity)[0].close()
        home.sign(files)
    deed = home.read(files)
    _check_same(files, deed, spec, layout)
    state, log = recovered(files, deed, sync, retain, spare)
    give_back()
    return state, Disk(files, deed.identity, log)


def looked_at(files: Files, spec: ModelSpec | None, layout: Layout | None) -> State:
    """Return what a store holds, and change nothing; StoreError if there is none."""
    if not home.exists(files):
        raise StoreError(f"there is no store in {files.path('')}")
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
