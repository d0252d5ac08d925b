"""Files are removed only once those that replace them are durable."""

import errno
import os
import random

import pytest

from giaann_p2p.errors import DiskError
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.store import Store
from tests.helpers import SMALL
from tests.helpers_store import JOB, state_of
from tests.unit.store.helpers import ALL, LAYOUT, LESSONS


def refuse() -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.parametrize("retain", [False, True])
def test_no_file_is_removed_while_the_name_of_a_snapshot_is_not_durable(
    disk: FakeDisk, retain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies before the directory is synced, and the next one cannot sync it."""
    store = Store.open(disk, SMALL, LAYOUT, retain=retain)
    store.hold(ALL)
    for one in LESSONS[:3]:
        store.apply([one.update(ALL)])
    store.snapshot()
    store.apply([LESSONS[3].update(ALL)])
    state = state_of(store)
    rename = disk.rename

    def renamed(old: str, new: str) -> None:
        rename(old, new)
        if new.startswith("snapshot"):
            monkeypatch.setattr(disk, "sync", refuse)

    monkeypatch.setattr(disk, "rename", renamed)
    with pytest.raises(DiskError):
        store.snapshot()
    again = Store.open(disk, retain=retain)
    again.release(JOB, [99])
    monkeypatch.undo()
    for seed in range(40):
        assert state_of(Store.open(disk.crash(random.Random(seed)))) == state
    again.apply([LESSONS[4].update(ALL)])
    again.snapshot()
    for seed in range(10):
        assert state_of(Store.open(disk.crash(random.Random(seed)))) == state_of(again)
