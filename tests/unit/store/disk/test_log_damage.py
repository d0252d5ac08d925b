"""A damaged log: it is refused by name and place, or reads as it always did."""

import errno
import struct
from collections.abc import Iterator

import pytest
from xxhash import xxh3_64_intdigest

from giaann_p2p.errors import DamagedError, DiskError
from giaann_p2p.store.disk import record
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.disk.log import Log
from giaann_p2p.store.disk.record import FORMAT, HEADER_SIZE, MARK, Header
from giaann_p2p.store.disk.recover import recover
from giaann_p2p.store.disk.replay import replay
from giaann_p2p.store.disk.verify import verify
from tests.helpers_log import IDENTITY, Found, found, recovered

A, B, C, D = (1, b"a"), (2, b""), (254, b"c" * 21), (0, b"dddddddd")


@pytest.fixture
def disk() -> FakeDisk:
    return FakeDisk()


@pytest.fixture
def log(disk: FakeDisk) -> Log:
    return recovered(disk)[0]


@pytest.fixture
def small(disk: FakeDisk, log: Log) -> FakeDisk:
    """Four files: one rolled, one whose disk failed, one that repeats records, the newest."""
    log.append([A, B, C])
    log.append([D])
    log.roll()
    log.append([(5, b"file two")])
    disk.fail_at(1, errno.EIO, partial=True, times=2)
    with pytest.raises(DiskError):
        log.append([C, C])
    log.append([(6, b"file three")])
    disk.damage("log-00000003", disk.read("log-00000003")[:-16])  # its last mark is gone
    again = recovered(disk)[0]
    again.append([B, A])
    again.append([(7, b"in the newest file")])
    again.append([B])
    assert len(disk.names()) == 4
    return disk


def test_a_flipped_bit_is_refused_or_harmless(small: FakeDisk) -> None:
    right = found(small)
    vital = {
        (record.place.file, record.place.offset + at)
        for record in replay(small, IDENTITY)
        for at in range(16 + len(record.payload))
    }
    for name, content, at in flips(small):
        small.damage(name, content)
        if outcome(small, name) == right:
            assert (int(name[4:]), at) not in vital
            assert recovered(copy(small))[1] == right
        else:
            with pytest.raises(DamagedError):
                list(recover(copy(small), IDENTITY)[1])


def flips(disk: FakeDisk) -> Iterator[tuple[str, bytes, int]]:
    for name in disk.names():
        good = disk.read(name)
        for at in range(len(good)):
            for bits in (1, 0x10, 0x80, 0xFF):
                yield name, good[:at] + bytes([good[at] ^ bits]) + good[at + 1 :], at
        disk.damage(name, good)


def outcome(disk: FakeDisk, name: str) -> Found | None:
    """Read a log with a damaged file: the records, or None for a refusal that names the file."""
    problems = {problem.file for problem in verify(disk, IDENTITY)}
    if not problems:
        return found(disk)
    assert problems == {name}
    with pytest.raises(DamagedError, match=f"{name} is damaged at byte "):
        found(disk)
    return None


def copy(disk: FakeDisk) -> FakeDisk:
    other = FakeDisk()
    for name in disk.names():
        other.create(name).write(disk.read(name))
    return other


def test_a_cut_file_is_refused_or_keeps_all_that_a_mark_vouches_for(small: FakeDisk) -> None:
    right, newest = found(small), small.names()[-1]
    for name in small.names():
        good = small.read(name)
        ends = whole_ends(small, name)
        for size in range(len(good)):
            small.damage(name, good[:size])
            records = outcome(small, name)
            if name != newest:
                assert records in (None, right)
                continue
            kept = sum(end <= size for end in ends)
            promised = size >= HEADER_SIZE + 16 + 32  # the record it began with, and its mark
            assert records == (right[: len(right) - len(ends) + kept] if promised else None)
        small.damage(name, good)


def whole_ends(disk: FakeDisk, name: str) -> list[int]:
    """Return where the records of a file end."""
    records = [record for record in replay(disk, IDENTITY) if record.place.file == int(name[4:])]
    padded = [-(-len(record.payload) // 8) * 8 for record in records]
    return [record.place.offset + 16 + size for record, size in zip(records, padded, strict=True)]


def test_zeros_over_any_part_are_refused_or_harmless(small: FakeDisk) -> None:
    right, newest = found(small), small.names()[-1]
    for name in small.names():
        good = small.read(name)
        for size in (8, 64):
            for at in range(0, len(good) - (16 if name == newest else 0), 8):
                small.damage(name, (good[:at] + bytes(size) + good[at + size :])[: len(good)])
                records = outcome(small, name)
                lost_the_last_mark = name == newest and at + size > len(good) - 16
                assert records in (None, right) or lost_the_last_mark
        small.damage(name, good)


def test_missing_files(small: FakeDisk) -> None:
    for name in small.names()[:-1]:
        other = copy(small)
        other.remove(name)
        with pytest.raises(DamagedError, match=f"{name} is damaged .*missing"):
            found(other)
        assert [problem.file for problem in verify(other, IDENTITY)] == [name]
    for name in small.names():
        first = int(name[4:])
        other = copy(small)
        other.remove(name)
        with pytest.raises(DamagedError, match=f"{name} is damaged .*missing"):
            recover(other, IDENTITY, first)


def test_records_do_not_count_elsewhere(small: FakeDisk) -> None:
    first, second = small.read("log-00000001"), small.read("log-00000002")
    small.damage("log-00000002", second[:HEADER_SIZE] + first[HEADER_SIZE:])
    assert outcome(small, "log-00000002") is None
    small.damage("log-00000002", first)
    with pytest.raises(DamagedError, match=r"log-00000002 .* it is log file 1, renamed"):
        found(small)


def test_another_stores_log_is_refused(small: FakeDisk) -> None:
    with pytest.raises(DamagedError, match=r"log-00000001 .*another store"):
        list(replay(small, b"fedcba9876543210"))


def test_a_newer_format_is_refused(small: FakeDisk) -> None:
    good = small.read("log-00000001")
    small.damage("log-00000001", good[:8] + bytes([FORMAT + 1]) + good[9:])
    with pytest.raises(DamagedError, match="it has format 2; this version reads 1"):
        found(small)


def test_verify_tells_all_problems(small: FakeDisk) -> None:
    for name, at in (("log-00000001", 20), ("log-00000001", 80), ("log-00000004", 90)):
        bad = bytearray(small.read(name))
        bad[at] ^= 1
        small.damage(name, bytes(bad))
    small.remove("log-00000003")
    problems = {(problem.file[-1], problem.offset) for problem in verify(small, IDENTITY)}
    assert problems == {("1", 0), ("1", 72), ("3", 0), ("4", 56 + 32)}


def test_a_torn_group_is_kept_up_to_the_tear(disk: FakeDisk, log: Log) -> None:
    log.append([A])
    whole = disk.read("log-00000001")
    pieces = [Header(IDENTITY, 1, 0).record(*C, len(whole) + at * 40) for at in range(3)]
    first, second, third = (b"".join(piece) for piece in pieces)
    for middle, left in ((second, 3), (bytes(40), 1), (second[:-3] + b"???", 3)):
        disk.damage("log-00000001", whole + first + middle + third)
        expected = [A, *[C] * left]  # where only the filling was hit, nothing is lost
        assert found(disk) == expected
        assert recovered(copy(disk))[1] == expected


def test_a_mark_inside_a_payload_is_no_mark(disk: FakeDisk, log: Log) -> None:
    log.append([A])
    whole = disk.read("log-00000001")
    mark = b"".join(Header(IDENTITY, 1, 0).record(MARK, b"", 72 + 24))
    assert whole.endswith(mark)
    torn = b"".join(Header(IDENTITY, 1, 0).record(1, mark * 9, len(whole)))
    disk.damage("log-00000001", whole + torn[:-1])
    assert found(disk) == [A]


def test_payloads_full_of_heads_do_not_slow_the_search_for_marks(
    disk: FakeDisk, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each head claims to be a mark and to cover the rest of the file."""
    size = 1 << 15
    heads = (struct.pack("<3sBIQ", b"gRc", MARK, size - at, 0) for at in range(64, size, 16))
    log.append([(1, b"".join(heads))])
    hashed = [0]

    def counted(data: bytes, seed: int = 0) -> int:
        hashed[0] += len(data)
        return xxh3_64_intdigest(data, seed)

    monkeypatch.setattr(record, "xxh3_64_intdigest", counted)
    assert list(verify(disk, IDENTITY)) == []
    at = len(disk.read("log-00000001")) - 16  # where the last mark is
    disk.damage("log-00000001", disk.read("log-00000001")[:at])
    assert len(found(disk)) == 1
    disk.damage("log-00000001", disk.read("log-00000001")[: at - 1])
    assert found(disk) == []
    assert hashed[0] < 20 * size
