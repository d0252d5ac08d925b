"""Whatever is found on a disk: what was written, or its first records, or an error that tells."""

import re
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from giaann_p2p.errors import StoreError
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.fsck import fsck
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.store import Store
from tests.helpers_hostile import few, hostile
from tests.helpers_store import JOB, State, copy_of, lessons, on_disk, state_of
from tests.unit.store.helpers_archive import OLD, begun, recalled, told, yardstick

LAYOUT = Layout(shards=2)
ALL = range(2)
LESSONS = lessons(5, seed=7)
LETTERS = bytes(range(256)) * 3
"""What no checksum guards but that of its record."""
DEED, SNAPSHOT, LOG = "store.json", "snapshot-00000002", "log-00000002"


@cache
def kept() -> tuple[FakeDisk, tuple[State, ...], tuple[bytes, ...]]:
    """Return a disk, what its store was after each record behind the snapshot, and other files."""
    disk, states, others = FakeDisk(), [], []
    with on_disk(disk, LAYOUT) as store:
        store.note("a", LETTERS)
        store.apply([one.update(ALL) for one in LESSONS[:2]])
        others.append(disk.read("log-00000001"))
        store.snapshot()
        states.append(state_of(store))
        store.note("b", LETTERS)
        states.append(state_of(store))
        for one in LESSONS[2:]:
            store.apply([one.update(ALL)])
            states.append(state_of(store))
            others.append(disk.read(LOG))
    foreign = FakeDisk()
    with on_disk(foreign, LAYOUT) as store:
        store.apply([one.update(ALL) for one in LESSONS[:2]])
        store.snapshot()
    others += [foreign.read(name) for name in (DEED, SNAPSHOT, LOG)]
    return disk, tuple(states), tuple(others)


def opened(disk: FakeDisk) -> State | None:
    """Return what is read, for reading and for writing alike; None for an error that tells."""
    told = ""
    try:
        seen = state_of(Store.open(disk, readonly=True))
    except StoreError as error:
        told = str(error)
    if told:
        assert re.search(r"store\.json|(snapshot|log)-\d{8}", told)
        with pytest.raises(StoreError, match=re.escape(told)):
            Store.open(disk)
        return None
    assert state_of(Store.open(disk)) == seen
    return seen


@pytest.mark.parametrize("name", [DEED, SNAPSHOT, LOG])
@few
@given(st.data())
def test_a_file_is_what_was_written_or_told_of(name: str, data: st.DataObject) -> None:
    disk, states, others = kept()
    other = copy_of(disk)
    content = data.draw(hostile(disk.read(name), *others))
    other.damage(name, content)
    found = opened(other)
    if found is None:
        assert content != disk.read(name)
    elif name == LOG:  # torn behind some record, as far as anybody can tell
        assert found in states
    else:
        assert found == states[-1]


@cache
def archived() -> tuple[FakeDisk, State]:
    """Return a disk with an archived file of four updates and another one of two."""
    disk = FakeDisk()
    with begun(disk) as store:
        for chosen in (0, 1, 2, 3):
            store.apply(told(chosen))
        store.snapshot()
        store.apply(told(4, 5))
        store.snapshot()
    with Store.open(copy_of(disk), retain=True) as store:
        return disk, state_of(store)


@pytest.mark.parametrize("name", [OLD, "log-00000002"])
@few
@given(st.data())
def test_of_an_archived_file_each_delta_is_right_or_not_there(
    name: str, data: st.DataObject
) -> None:
    disk, wanted = archived()
    other, expected = copy_of(disk), yardstick()
    names = [OLD, "log-00000002"]
    other.damage(name, data.draw(hostile(disk.read(name), *map(disk.read, names))))
    problems = fsck(copy_of(other)).problems
    with Store.open(other, retain=True) as store:
        assert state_of(store) == wanted
        right = [recalled(store, chunk, expected) for chunk in range(6)]
        assert store.retained(JOB) == BitMap(chunk for chunk in range(6) if right[chunk])
    assert problems or all(right)


@few
@given(hostile(b'{"format":2,"id":"x","layout":{"shards":2,"blocks":1}}', b"[" * 60))
def test_any_deed_is_one_or_told_of(content: bytes) -> None:
    disk = copy_of(kept()[0])
    disk.damage(DEED, content)
    assert opened(disk) is None


@pytest.mark.parametrize(
    "content",
    [b'{"a":' + b"[" * 100_000, b'{"format":3,"id":"\xff","layout":{},"spec":{}}'],
    ids=["deep", "no UTF-8"],
)
def test_a_deed_that_once_raised_something_else(content: bytes) -> None:
    disk = copy_of(kept()[0])
    disk.damage(DEED, content)
    with pytest.raises(StoreError, match=r"store\.json is damaged"):
        Store.open(disk)
