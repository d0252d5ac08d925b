"""Checks a store's files: every byte must be what was written, and the digests must match."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from giaann_p2p.errors import DamagedError, GiaannError
from giaann_p2p.model.digest import readable
from giaann_p2p.store import home, snapshot
from giaann_p2p.store.cold import ColdRoom
from giaann_p2p.store.disk.files import Files
from giaann_p2p.store.disk.verify import verify
from giaann_p2p.store.records import Kind, content_of, promised_digest
from giaann_p2p.store.recovery import seen
from giaann_p2p.store.state import StoreState
from giaann_p2p.store.store import Store


@dataclass
class Checked:
    """The result of checking a store's files."""

    files: int = 0
    nbytes: int = 0
    problems: list[str] = field(default_factory=list)
    """One message for each problem found; it names the file and the place in the file."""
    digest: str | None = None
    """The digest of the whole store; None if there are problems."""


def fsck(files: Files) -> Checked:
    """Check all files of a store, and the state that they produce, without changing anything.

    A writer may be active: if it removes files during a check, the check starts over.
    """
    while True:
        names, newest = files.names(), _newest(files)
        try:
            checked = _checked(files)
        except FileNotFoundError:
            if files.names() == names:
                raise
            continue  # a writer removed files meanwhile
        if not checked.problems or _newest(files) == newest:
            return checked  # otherwise the problems may come from a writer that removed files


def _checked(files: Files) -> Checked:
    names = files.names()
    checked = Checked(len(names), sum(map(files.size, names)))
    checked.problems += dict.fromkeys(_problems(files))
    if not checked.problems:
        with Store.open(files, readonly=True) as store:
            checked.digest = readable(store.digest())
    return checked


def _newest(files: Files) -> int | None:
    return snapshot.newest(files) if home.NAME in files.names() else None


def _problems(files: Files) -> Iterator[str]:
    try:
        if not home.exists(files):
            raise DamagedError(f"there is no store in {files.path('')}")
        parameters = home.read(files)
        first = snapshot.newest(files) or 1
    except GiaannError as error:
        yield str(error)
        return
    found = list(verify(files, parameters.identity, first))
    for problem in found:
        yield f"{files.path(problem.file)} is damaged at byte {problem.offset:,}: {problem.what}"
    try:
        _check_sums(files, parameters)
        limits = StoreState(parameters.spec, parameters.layout).limits
        ColdRoom(files, parameters.identity, limits, parameters.layout).check()
        if not found:
            seen(files, parameters)
    except GiaannError as error:
        yield str(error)


def _check_sums(files: Files, parameters: home.StoreParameters) -> None:
    """Compare each part of the newest snapshot with the digest that was written with it."""
    number = snapshot.newest(files)
    if number is None:
        return
    limits = StoreState(parameters.spec, parameters.layout).limits
    for record in snapshot.read(files, parameters.identity, number):
        if record.kind != Kind.CONTENT:
            continue
        held = content_of(record.payload, limits)
        if held.digest != promised_digest(record.payload):
            name, offset = snapshot.name_of(number), record.place.offset
            raise snapshot.damaged(files, name, offset, "the content does not match its digest")
