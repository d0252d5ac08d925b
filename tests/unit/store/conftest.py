"""Disks and a store that many tests begin with."""

from collections.abc import Iterator

import pytest

from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.store import Store
from tests.helpers_store import on_disk
from tests.unit.store.helpers import LAYOUT
from tests.unit.store.helpers_archive import begun, told


@pytest.fixture
def disk() -> FakeDisk:
    return FakeDisk()


@pytest.fixture
def store(disk: FakeDisk) -> Iterator[Store]:
    with on_disk(disk, LAYOUT) as store:
        yield store


@pytest.fixture(scope="module")
def archived() -> FakeDisk:
    """An archived file with four updates, and two in another one."""
    disk = FakeDisk()
    store = begun(disk)
    for chosen in (0, 1, 2, 3):
        store.apply(told(chosen))
    store.snapshot()
    store.apply(told(4, 5))
    store.snapshot()
    store.close()
    return disk
