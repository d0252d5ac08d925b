"""Whatever fails, whenever the power goes: what was acknowledged is there, whole and in order."""

import errno
import random
from collections.abc import Callable
from itertools import product

import pytest

from giaann_p2p.errors import DiskError
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.disk.sync import ALWAYS, NEVER, Sync
from giaann_p2p.store.disk.verify import verify
from tests.helpers_log import IDENTITY, Book, Found, found, recovered

Step = Callable[[Book], None]

STEPS: list[Step] = [
    lambda book: book.append(10),
    lambda book: book.append(5000, 3, 0, 9000),
    lambda book: book.append(1, 2, 3),
    lambda book: book.roll(),
    lambda book: book.append(4100, 4100),
    lambda book: book.append(20),
    lambda book: book.sync(),
    lambda book: book.append(30, 40),
    lambda book: book.snapshot(),
    lambda book: book.append(7),
    lambda book: book.append(6000, 6000, 6000),
    lambda book: book.append(8),
    lambda book: book.snapshot(),
    lambda book: book.append(9),
    lambda book: book.append(100, 5000),
]


def begun(disk: FakeDisk, sync: Sync) -> Book:
    return Book(recovered(disk, sync=sync)[0])


def work(book: Book, stops: bool, steps: list[Step] = STEPS) -> None:
    for step in steps:
        try:
            step(book)
        except DiskError:
            if stops:
                return


def check(book: Book, disk: FakeDisk, rng: random.Random) -> None:
    """Let the power go, or the process; again while the log is recovered, and while it goes on."""
    if rng.random() < 0.7:
        disk = disk.crash(rng)
    assert book.allows(found(disk, book.first))
    assert not list(verify(disk, IDENTITY, book.first))
    disk.fail_at(rng.randint(1, 8), errno.EIO, rng.random() < 0.5, rng.randint(0, 4))
    book.take_up(*recovered(disk, book.first, book.log._sync))
    if rng.random() < 0.3:
        disk = disk.crash(rng)
        book.take_up(*recovered(disk, book.first, book.log._sync))
    work(book, stops=False, steps=rng.sample(STEPS, 3))
    disk = disk.crash(rng)
    assert book.allows(recovered(disk, book.first)[1])


def operations(sync: Sync) -> int:
    disk = FakeDisk()
    work(begun(disk, sync), stops=True)
    return disk.operations


@pytest.mark.parametrize("sync", [ALWAYS, NEVER], ids=["always", "never"])
@pytest.mark.parametrize("stops", [False, True], ids=["goes-on", "stops"])
@pytest.mark.parametrize("times", [1, 2, 3, 9])
def test_any_operation_may_fail_and_the_power_go(sync: Sync, stops: bool, times: int) -> None:
    tried = product(
        range(1, operations(sync) + 2), (False, True), (errno.ENOSPC, errno.EIO), range(3)
    )
    for n, partial, error, seed in tried:
        disk, rng = FakeDisk(), random.Random(f"{n} {partial} {error} {seed}")
        book = begun(disk, sync)
        disk.fail_at(n - disk.operations, error, partial, times)
        work(book, stops)
        if seed == 0 and not stops:
            assert book.allows(found(disk, book.first))
        check(book, disk, rng)


class Stopped(Exception):  # noqa: N818
    """The power is gone."""


class Cut(FakeDisk):
    """Loses its power at an operation: nothing behind it happens."""

    last = 0

    def change(self, make: Callable[[], object], half: Callable[[], object] | None = None) -> None:
        if self.last and self.operations >= self.last:
            raise Stopped
        super().change(make, half)


@pytest.mark.parametrize("sync", [ALWAYS, NEVER], ids=["always", "never"])
def test_the_power_may_go_at_any_operation(sync: Sync) -> None:
    for n, seed in product(range(1, operations(sync) + 1), range(20)):
        disk, rng = Cut(), random.Random(f"{n} {seed}")
        disk.last = n
        try:
            book = begun(disk, sync)
        except Stopped:
            assert recovered(disk.crash(rng))[1] == []
            continue
        try:
            for step in STEPS:
                step(book)
        except Stopped:
            book.failed.append(book.acknowledged + interrupted(step, sync))
        disk.last = 0
        book.log = begun(FakeDisk(), sync).log
        check(book, disk, rng)


def interrupted(last: Step, sync: Sync) -> Found:
    """Return what the step that the power cut would have appended."""
    book = begun(FakeDisk(), sync)
    for step in STEPS[: STEPS.index(last) + 1]:
        before = book._count
        step(book)
    return book.acknowledged[-(book._count - before) :] if book._count > before else []


def test_a_full_disk_and_then_space() -> None:
    for capacity in range(100, 30_000, 97):
        disk, rng = FakeDisk(capacity), random.Random(capacity)
        try:
            book = begun(disk, ALWAYS)
        except DiskError:
            assert capacity < 200
            continue
        work(book, stops=False)
        assert book.allows(found(disk, book.first))
        disk.capacity = None
        book.append(3000)
        assert found(disk, book.first) == book.acknowledged
        check(book, disk, rng)


class Interrupted(FakeDisk):
    """Somebody presses Ctrl-C before or behind an operation."""

    at, behind = 0, False

    def change(self, make: Callable[[], object], half: Callable[[], object] | None = None) -> None:
        hit = self.operations + 1 == self.at
        if hit and not self.behind:
            self.operations += 1
            raise KeyboardInterrupt
        super().change(make, half)
        if hit:
            raise KeyboardInterrupt


@pytest.mark.parametrize("sync", [ALWAYS, NEVER], ids=["always", "never"])
def test_an_interrupt_is_survived(sync: Sync) -> None:
    for n, behind in product(range(6, operations(sync) + 1), (False, True)):
        disk, rng = Interrupted(), random.Random(n)
        disk.at, disk.behind = n, behind
        book = begun(disk, sync)
        for step in STEPS:
            try:
                step(book)
            except KeyboardInterrupt:  # it is open whether this was acknowledged
                book.failed.append(book.acknowledged + interrupted(step, sync))
                book.log.ready()
                book.take_up(book.log, found(disk, book.first))
        assert book.allows(found(disk, book.first))
        check(book, disk, rng)


class Watched(FakeDisk):
    """Is read by somebody else after each operation."""

    book: Book | None = None

    def change(self, make: Callable[[], object], half: Callable[[], object] | None = None) -> None:
        try:
            super().change(make, half)
        finally:
            if self.book:
                records = found(self, self.book.first)
                count = len(self.book.acknowledged)
                assert records[:count] == self.book.acknowledged


def test_a_reader_sees_what_was_acknowledged_at_any_time() -> None:
    steps = [step for step in STEPS if step.__code__.co_names != ("snapshot",)]
    for n, partial in product(range(operations(ALWAYS)), (False, True)):
        disk = Watched()
        book = disk.book = begun(disk, ALWAYS)
        disk.fail_at(n, errno.EIO, partial)
        work(book, stops=False, steps=steps)
        assert found(disk) == book.acknowledged


def live(seed: int, sync: Sync) -> None:
    """Work, fail, stop and recover, again and again."""
    rng = random.Random(seed)
    disk = FakeDisk(rng.choice([None, 40_000]))
    book = begun(disk, sync)
    for _ in range(12):
        disk.fail_at(rng.randint(1, 30), errno.EIO, rng.random() < 0.5, rng.randint(0, 3))
        work(book, rng.random() < 0.5, rng.choices(STEPS, k=rng.randint(0, 6)))
        if rng.random() < 0.6:
            disk = disk.crash(rng)
        assert book.allows(found(disk, book.first))
        assert not list(verify(disk, IDENTITY, book.first))
        book.take_up(*recovered(disk, book.first, sync))


@pytest.mark.parametrize("sync", [ALWAYS, NEVER], ids=["always", "never"])
def test_a_long_life(sync: Sync) -> None:
    for seed in range(150):
        live(seed, sync)
