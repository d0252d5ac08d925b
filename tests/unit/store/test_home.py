"""A store's directory: whose it is, and who writes to it."""

import errno
import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from giaann_p2p.errors import DamagedError, DiskError, StoreError
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.store import home
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.disk.files import DiskFiles
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.store import Store
from tests.helpers import SMALL
from tests.helpers_store import copy_of, on_disk

LAYOUT = Layout(shards=8, blocks=2)


def signed(disk: FakeDisk) -> home.StoreParameters:
    parameters = home.draft(disk, SMALL, LAYOUT)
    home.sign(disk)
    return parameters


def test_a_deed_is_read_as_it_was_signed() -> None:
    disk = FakeDisk()
    assert not home.exists(disk)
    parameters = home.draft(disk, SMALL, LAYOUT)
    assert not home.exists(disk)
    home.sign(disk)
    assert home.exists(disk)
    assert home.read(disk) == parameters
    assert (parameters.layout, parameters.spec, parameters.format) == (LAYOUT, SMALL, home.FORMAT)
    assert json.loads(disk.read("store.json"))["layout"] == {"shards": 8, "blocks": 2}


def test_every_store_has_an_identity_of_its_own() -> None:
    found = {signed(FakeDisk()).identity for _ in range(5)}
    assert len(found) == 5
    assert {len(identity) for identity in found} == {16}
    one = signed(FakeDisk())
    other = home.StoreParameters(id=one.id, layout=LAYOUT, spec=ModelSpec())
    assert other.identity != one.identity


def test_what_an_attempt_left_is_removed_and_nothing_else() -> None:
    disk = FakeDisk()
    home.draft(disk, SMALL, LAYOUT)
    for name in ("log-00000001", "snapshot-00000001.new", "letter.txt"):
        disk.create(name).close()
    parameters = signed(disk)
    assert disk.names() == ["letter.txt", "store.json"]
    assert home.read(disk) == parameters


@pytest.mark.parametrize("name", ["log-00000001", "snapshot-00000009", "snapshot-00000009.new"])
def test_files_without_their_deed_are_never_taken_for_nothing(name: str) -> None:
    disk = FakeDisk()
    disk.create(name).close()
    with pytest.raises(StoreError, match=r"store\.json is missing, but other files"):
        home.exists(disk)
    assert disk.names() == [name]


@pytest.mark.parametrize(
    "keep", ["log-00000001", "log-00000002", "snapshot-00000002", "cold-00001"]
)
def test_a_draft_beside_files_in_use_does_not_let_them_be_deleted(keep: str) -> None:
    disk = FakeDisk()
    with on_disk(disk, Layout(shards=4)) as store:
        store.cool(1, 0.0)
        if keep != "log-00000001":
            store.snapshot()
    for name in {*disk.names()} - {keep, "store.json"}:
        disk.remove(name)
    disk.rename("store.json", "store.json.new")
    for readonly in (False, True):
        with pytest.raises(StoreError, match=r"store\.json is missing, but other files"):
            Store.open(disk, SMALL, Layout(shards=4), readonly=readonly)
    assert disk.names() == [keep, "store.json.new"]


def test_a_creation_that_was_interrupted_starts_over() -> None:
    for operation in range(1, 30):
        disk = FakeDisk()
        disk.fail_at(operation, errno.EIO, times=1 << 30)
        with suppress(DiskError):
            Store.open(disk, SMALL, Layout(shards=4)).close()
        disk.fail_at(1, errno.EIO, times=0)
        for each in (copy_of(disk), disk):
            Store.open(each, SMALL, Layout(shards=4)).close()
            assert home.exists(each)


def test_another_format_is_refused_whatever_else_it_says() -> None:
    disk = FakeDisk()
    signed(disk)
    disk.damage("store.json", b'{"format": 4, "shape": "round"}')
    with pytest.raises(StoreError, match=r"store\.json has format 4; this version reads 3"):
        home.read(disk)


@pytest.mark.parametrize("data", [b"", b"{}", b"\xff\xfe", b'{"format": "1"}', b'{"format": 3}'])
def test_what_is_no_deed_is_damaged(data: bytes) -> None:
    disk = FakeDisk()
    signed(disk)
    disk.damage("store.json", data)
    with pytest.raises(DamagedError, match=r"store\.json is damaged: "):
        home.read(disk)


def test_a_disk_that_fails_is_told() -> None:
    disk = FakeDisk()
    disk.fail_at(1, errno.ENOSPC, times=100)
    with pytest.raises(DiskError, match=r"store\.json\.new: No space left"):
        home.draft(disk, SMALL, LAYOUT)
    with pytest.raises(FileNotFoundError):
        disk.read("store.json")
    with pytest.raises(DiskError, match=r"store\.json: No such file"):
        home.read(FakeDisk())


def test_a_directory_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DiskError, match="Not a directory"):
        home.exists(DiskFiles(tmp_path / "file"))
    assert not home.exists(DiskFiles(tmp_path / "none"))


def test_one_writes_at_a_time(tmp_path: Path) -> None:
    where = tmp_path / "a" / "b"
    with (
        home.locked(where),
        pytest.raises(StoreError, match=f"{where} is being written to"),
        home.locked(where),
    ):
        pass
    assert not where.exists()
    with home.locked(where):
        (where / "something").write_text("")
    assert where.exists()


_OTHER = """
import sys, fcntl, os
handle = os.open(sys.argv[1], os.O_RDONLY)
fcntl.flock(handle, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_lock_of_another_process_ends_with_it(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    other = subprocess.Popen(
        [sys.executable, "-c", _OTHER, str(tmp_path / "store")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert other.stdout is not None
    assert other.stdout.readline() == b"locked\n"
    with pytest.raises(StoreError, match="another process"), home.locked(tmp_path / "store"):
        pass
    other.kill()
    other.communicate()
    with home.locked(tmp_path / "store"):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [None, errno.ENOTSUP, errno.EACCES])
def test_the_names_of_new_directories_are_durable_before_a_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int | None
) -> None:
    synced = list[Path]()

    def sync(files: DiskFiles) -> None:
        synced.append(Path(files.path("")))
        if error is not None:
            raise OSError(error, os.strerror(error))

    monkeypatch.setattr(DiskFiles, "sync", sync)
    (tmp_path / "a").mkdir()  # somebody may have made a part of them just now
    with home.locked(tmp_path / "a" / "b"):
        assert synced[:2] == [tmp_path / "a", tmp_path]
        (tmp_path / "a" / "b" / home.NAME).write_text("")
    synced.clear()
    with home.locked(tmp_path / "a" / "b"):
        assert synced == []


def test_a_directory_whose_name_cannot_be_made_durable_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sync(_: DiskFiles) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(DiskFiles, "sync", sync)
    with pytest.raises(DiskError, match="Input/output error"), home.locked(tmp_path / "store"):
        pytest.fail("the store may vanish in a power cut")
    assert not (tmp_path / "store").exists()
