"""Files that are not as they were written: read right, or refused by name, never read wrong."""

import json
import random
import re
from collections.abc import Callable

import pytest

from giaann_p2p.errors import StoreError
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.disk.record import HEADER_SIZE, MARK, Header, behind
from giaann_p2p.store.home import StoreParameters
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.store import Store
from tests.helpers_store import State, copy_of, lessons, on_disk, state_of

LAYOUT = Layout(shards=2)
ALL = range(2)
LESSONS = lessons(4, seed=3)
DEED, SNAPSHOT, LOG = "store.json", "snapshot-00000002", "log-00000002"
FILES = [DEED, SNAPSHOT, LOG]


@pytest.fixture(scope="module")
def disk() -> FakeDisk:
    """A store of four chunks: two in a snapshot, two in the log behind it; and notes in both."""
    disk = FakeDisk()
    with on_disk(disk, LAYOUT) as store:
        store.note("a", b"1")
        store.apply([one.update(ALL) for one in LESSONS[:2]])
        store.snapshot()
        store.note("b", b"2")
        for one in LESSONS[2:]:
            store.apply([one.update(ALL)])
    assert disk.names() == sorted(FILES)
    return disk


@pytest.fixture(scope="module")
def whole(disk: FakeDisk) -> State:
    return state_of(Store.open(copy_of(disk)))


def damaged(disk: FakeDisk, name: str, content: bytes) -> FakeDisk:
    other = copy_of(disk)
    other.damage(name, content)
    return other


def state_or_error(disk: FakeDisk) -> State | str:
    """Open for writing and for reading; both come to the same."""
    try:
        seen = state_of(Store.open(disk, readonly=True))
    except StoreError as error:
        with pytest.raises(type(error), match=re.escape(str(error))):
            Store.open(disk)
        return str(error)
    assert state_of(Store.open(disk)) == seen
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_any_flipped_byte_changes_nothing_or_is_told(
    disk: FakeDisk, whole: State, name: str
) -> None:
    content, rng, told = disk.read(name), random.Random(name), 0
    assert len(content) < 20_000
    for at in range(len(content)):
        flipped = bytearray(content)
        flipped[at] ^= 1 << rng.randrange(8)
        found = state_or_error(damaged(disk, name, bytes(flipped)))
        if isinstance(found, str):
            told += 1
            assert name in found or name == DEED
            assert name == DEED or re.search(r"is damaged at byte [\d,]+: ", found)
        else:
            assert found == whole
    assert told > len(content) * (0.6 if name == DEED else 0.9)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (DEED, "store.json is missing, but other files of the store are there: restore it"),
        (SNAPSHOT, "log-00000001 is damaged at byte 0: the file is missing"),  # what it replaced
        (LOG, "log-00000002 is damaged at byte 0: the file is missing"),
    ],
)
def test_a_file_that_is_missing_is_told(disk: FakeDisk, name: str, told: str) -> None:
    other = copy_of(disk)
    other.remove(name)
    assert state_or_error(other) == told


@pytest.mark.parametrize("name", [DEED, SNAPSHOT])
def test_a_file_that_is_cut_is_told(disk: FakeDisk, whole: State, name: str) -> None:
    content = disk.read(name)
    for size in range(len(content)):
        found = state_or_error(damaged(disk, name, content[:size]))
        if isinstance(found, str):
            assert name in found
        else:
            assert (name, size, found) == (DEED, len(content) - 1, whole)  # a newline


def test_a_log_that_is_cut_keeps_the_first_records(disk: FakeDisk) -> None:
    """What nobody can tell from the torn end of a write; a cut before the first mark is told."""
    content = disk.read(LOG)
    parameters = Store.open(copy_of(disk))._disk
    assert parameters is not None
    header = Header(parameters.identity, 2, 0)
    first_mark = HEADER_SIZE
    ends = []
    for record in header.records(memoryview(content)):
        if record.kind != MARK:
            ends.append(behind(record))
        elif first_mark == HEADER_SIZE:
            first_mark = behind(record)
    states = [state_or_error(damaged(disk, LOG, content[:end])) for end in (first_mark, *ends)]
    assert len(states) == 4
    for size in sorted({*range(0, len(content), 4), *(n for end in ends for n in (end - 1, end))}):
        found = state_or_error(damaged(disk, LOG, content[:size]))
        if size < first_mark:
            assert isinstance(found, str)
            assert LOG in found
        else:
            assert found == states[sum(end <= size for end in ends)]


def version_of_header(content: bytes) -> bytes:
    return content[:8] + (7).to_bytes(4, "little") + content[12:]


def version_of_deed(content: bytes) -> bytes:
    return json.dumps(json.loads(content) | {"format": 7, "new": "something"}).encode()


@pytest.mark.parametrize(
    ("name", "change"),
    [(DEED, version_of_deed), (SNAPSHOT, version_of_header), (LOG, version_of_header)],
)
def test_another_format_is_refused(
    disk: FakeDisk, name: str, change: Callable[[bytes], bytes]
) -> None:
    found = state_or_error(damaged(disk, name, change(disk.read(name))))
    assert isinstance(found, str)
    assert name in found
    assert f"has format 7; this version reads {3 if name == DEED else 1}" in found


@pytest.mark.parametrize("name", [SNAPSHOT, LOG])
def test_a_file_of_another_store_is_refused(disk: FakeDisk, name: str) -> None:
    other = FakeDisk()
    with on_disk(other, LAYOUT) as store:
        store.snapshot()
    found = state_or_error(damaged(disk, name, other.read(name)))
    assert isinstance(found, str)
    assert f"{name} is damaged at byte 0: it belongs to another store" in found


def test_a_deed_of_another_store_is_told_by_its_files(disk: FakeDisk) -> None:
    other = FakeDisk()
    on_disk(other, LAYOUT).close()
    found = state_or_error(damaged(disk, DEED, other.read(DEED)))
    assert isinstance(found, str)
    assert "belongs to another store" in found


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"layout": {"shards": 3}}, "shards must be a power of two"),
        ({"spec": {"rules": 2}}, "rules must be 1"),
        ({"id": 5}, "id must be a text, not a whole number"),
        ({"what": 5}, "what is not known here"),
    ],
)
def test_a_deed_that_breaks_a_rule_is_damaged(
    disk: FakeDisk, change: dict[str, object], told: str
) -> None:
    content = json.dumps(json.loads(disk.read(DEED)) | change).encode()
    found = state_or_error(damaged(disk, DEED, content))
    assert isinstance(found, str)
    assert found.startswith("store.json is damaged: ")
    assert told in found


def test_a_deed_is_the_same_however_it_is_written(disk: FakeDisk, whole: State) -> None:
    content = json.loads(disk.read(DEED))
    turned = json.dumps(dict(reversed(content.items()))).encode()
    assert state_or_error(damaged(disk, DEED, turned)) == whole
    assert StoreParameters.__struct_fields__ == ("format", "id", "layout", "spec")
