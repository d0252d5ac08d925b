"""The shards in a store's files are found by reading only the heads of records."""

import random

import pytest

from giaann_p2p.errors import DamagedError
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.shards_on_disk import shards_on_disk
from giaann_p2p.store.store import Store
from tests.helpers import SMALL
from tests.unit.store.helpers import LAYOUT, LESSONS


def opened(disk: FakeDisk) -> Store:
    return Store.open(disk, SMALL, LAYOUT, retain=True)


@pytest.mark.parametrize("seed", range(8))
def test_they_are_those_that_the_open_store_has(seed: int) -> None:
    chance, disk, store = random.Random(seed), FakeDisk(), None
    elsewhere = Store.in_memory(SMALL, LAYOUT)
    elsewhere.hold(range(LAYOUT.shards))
    elsewhere.apply([LESSONS[9].update(range(LAYOUT.shards))])
    for step in range(60):
        store = store or opened(disk)
        every = range(store.layout.shards)
        some = chance.sample(every, 2)
        deed = chance.choice(["hold", "hold", "drop", "learn", "adopt", "compact", "double", "end"])
        if deed == "hold":
            store.hold(some)
        elif deed == "drop":
            store.drop(some)
        elif deed == "learn" and store.layout == LAYOUT:
            store.apply([LESSONS[step % 9].update(store.shards.tolist())])
        elif deed == "adopt" and store.layout == LAYOUT and some[0] not in store.shards:
            store.adopt(elsewhere.content(some[0]))
        elif deed == "compact":
            store.compact()
        elif deed == "double" and store.layout.shards < 32 and step > 30:
            store.double(2 * store.layout.shards)
        elif deed == "end":
            store.close()
        found, layout = shards_on_disk(disk)
        assert (found.tolist(), layout) == (store.shards.tolist(), store.layout), deed
        store = None if deed == "end" else store


def test_damage_ends_what_is_read_of_a_file() -> None:
    """Opening the store tells of the damage; until then it is enough to announce too little."""
    disk = FakeDisk()
    with opened(disk) as store:
        store.hold([1])
        store.hold([2])
    (name,) = (name for name in disk.names() if name.startswith("log"))
    data = bytearray(disk.read(name))
    data[data.rindex(b"gRc\x01") + 16] ^= 0xFF  # the payload of the last record of shards to hold
    file = disk.reopen(name)
    file.truncate(0)
    file.write(bytes(data))
    file.close()
    assert shards_on_disk(disk)[0].tolist() == [1]
    with pytest.raises(DamagedError):
        opened(disk)
