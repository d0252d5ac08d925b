"""Where a store is made and found: a folder, memory, nowhere."""

from pathlib import Path

import pytest

from giaann_p2p.errors import DiskError, StoreError, UsageError
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.store import home
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.store import Store
from tests.helpers import SMALL
from tests.helpers_store import state_of
from tests.unit.store.helpers import ALL, LAYOUT, LESSONS, same, taught


def test_another_model_or_layout_is_refused_by_name(disk: FakeDisk, store: Store) -> None:
    store.close()
    with pytest.raises(UsageError, match="another model: seed_tokens: 12 and 4;"):
        Store.open(disk, ModelSpec())
    with pytest.raises(UsageError, match="another model: branches: 3 and 2"):
        Store.open(disk, ModelSpec(seed_tokens=4, branches=3), readonly=True)
    with pytest.raises(UsageError, match=r"another layout: shards=4, blocks=1, chunk=64"):
        Store.open(disk, SMALL, Layout(shards=4, blocks=2))
    assert Store.open(disk, SMALL, LAYOUT).spec == SMALL


def test_in_memory_there_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Store.in_memory(SMALL, LAYOUT) as store:
        store.hold(ALL)
        store.apply([LESSONS[0].update(ALL)])
        store.note("a", b"1")
        store.snapshot()
        store.compact()
        store.sync()
        assert not store.snapshot_due
        assert state_of(store)[1] == {"a": b"1"}
    assert list(tmp_path.iterdir()) == []


def test_a_directory_is_made_and_found_again(tmp_path: Path) -> None:
    where = tmp_path / "some" / "where"
    with Store.at(where, SMALL, LAYOUT) as store:
        store.hold(ALL)
        store.apply([LESSONS[0].update(ALL)])
        with pytest.raises(StoreError, match="is being written to"):
            Store.at(where)
        with Store.at(where, readonly=True) as seen:
            assert same(seen, taught(LESSONS[0]))
            with pytest.raises(UsageError, match="for reading only"):
                seen.apply([LESSONS[1].update(ALL)])
            seen.snapshot()
    with Store.at(where, SMALL) as store:
        assert same(store, taught(LESSONS[0]))
        store.snapshot()
        assert sorted(path.name for path in where.iterdir()) == [
            "log-00000002",
            "snapshot-00000002",
            "store.json",
        ]


def test_where_there_is_none_nothing_is_read_and_nothing_made(tmp_path: Path) -> None:
    for where in (tmp_path, tmp_path / "none"):
        with pytest.raises(StoreError, match="there is no store in"):
            Store.at(where, readonly=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file is not a directory"):
        Store.at(tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_making_a_store_that_fails_leaves_no_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise DiskError("no")

    monkeypatch.setattr(home, "draft", fail)
    with pytest.raises(DiskError):
        Store.at(tmp_path / "typo")
    assert list(tmp_path.iterdir()) == []
