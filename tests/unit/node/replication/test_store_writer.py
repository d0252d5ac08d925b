"""Deeds in one thread: in order, together where they can be, each with its own outcome."""

import asyncio
import errno
import random
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import numpy as np
import pytest

from giaann_p2p.errors import DiskError, GiaannError, UsageError
from giaann_p2p.net.clock import VirtualLoop
from giaann_p2p.node.options import Options
from giaann_p2p.node.replication.holdings import Holdings
from giaann_p2p.node.replication.store_writer import Change, StoreWriter, Wanted
from giaann_p2p.sim.lessons import SPEC
from giaann_p2p.store import journal
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.layout import Shards
from giaann_p2p.store.store import Store
from giaann_p2p.store.transfer import Export, Import
from giaann_p2p.store.update import Packed, Update
from giaann_p2p.swarm.replication.retract import Withdraw
from giaann_p2p.swarm.wire.actions import Adopt, Apply, Cool, Drop, Hold, Release
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.orphans import Orphans
from giaann_p2p.swarm.wire.voucher import sealing, vouched
from giaann_p2p.swarm.wire.withdrawn import roots_in
from tests.helpers_swarm import AUTHORS, SWARM_ID, Listed
from tests.unit.node.helpers import ALL, JOB, LAYOUT, LESSONS, SlowLoop, lesson, taught

UNWELCOME = 77


def _refuse(update: Update) -> None:
    raise UsageError("not this one")


def some(*numbers: int) -> Shards:
    return np.array(numbers, np.uint16)


def arrived(store: Store, shard: int) -> Import:
    """Return what comes of a shard on its way."""
    export = Export(store.content(shard))
    taken = Import(export.manifest, store.limits)
    for number in taken.missing:
        taken.take(number, export.part(number))
    return taken


def packed(number: int, shards: Shards, parcel: bytes, store: Store) -> Packed:
    """Return a chunk of the same number, as it comes."""
    return Packed(JOB, number, shards, parcel, store.limits, store.layout, shards)


class Desk:
    """A keeper, and what it told."""

    def __init__(
        self,
        store: Store,
        options: Options | None = None,
        write: ThreadPoolExecutor | None = None,
        clock: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.store, self.holdings = store, Holdings(store)
        self.told: dict[int, str | None] = {}
        self.store_writer = StoreWriter(
            store,
            self.holdings,
            self._tell,
            options=options,
            clock=clock,
            write=write,
            beside=write,
        )
        self.task = asyncio.get_running_loop().create_task(self.store_writer.run())

    def _tell(self, number: int, error: GiaannError | None) -> None:
        self.told[number] = None if error is None else str(error)

    def apply(
        self,
        number: int,
        shards: Shards = ALL,
        wanted: Wanted | None = None,
        author: Identity | None = None,
    ) -> None:
        """Have a chunk taken in, of the same number."""
        update = packed(number, shards, LESSONS.parcel(number, shards), self.store)
        if author:
            tree = LESSONS.tree(number)
            said = vouched(author, SWARM_ID, JOB, number, tree.root)
            update = update._replace(seal=sealing([said], tree)(shards))
        if number == UNWELCOME:
            update = update._replace(check=_refuse)
        self.store_writer.do(Apply(number, [update]), wanted)

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        assert len(asyncio.all_tasks()) == 1


def play(
    story: Callable[[Desk], Awaitable[None]],
    store: Store | None = None,
    options: Options | None = None,
    loop: type[VirtualLoop] = SlowLoop,
    clock: Callable[[], float] = lambda: 0.0,
) -> Desk:
    async def main() -> Desk:
        desk = Desk(store or Store.in_memory(SPEC, LAYOUT, retain=True), options, clock=clock)
        await story(desk)
        await desk.end()
        return desk

    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(main())


def test_an_update_finds_the_shards_that_were_to_be_held_before_it() -> None:
    async def story(desk: Desk) -> None:
        desk.store_writer.do(Hold(ALL))
        desk.apply(1)
        assert repr(desk.store_writer).startswith("<StoreWriter: 2 changes wait")
        await desk.store_writer.idle()
        assert desk.told == {1: None}
        assert dict(desk.store.digests()) == taught([1])
        assert desk.holdings.sets([0, 99]) == desk.store.sets([0])
        assert desk.holdings.retained_for(3) == desk.store.retained_for(3)

    play(story)


def test_updates_that_wait_are_made_durable_together() -> None:
    disk = FakeDisk()

    async def story(desk: Desk) -> None:
        desk.store_writer.do(Hold(ALL))
        for chunk in range(20):
            desk.apply(chunk)
        await desk.store_writer.idle()
        assert desk.store_writer.groups == 1
        for chunk in range(20, 40):
            desk.apply(chunk)
        await desk.store_writer.idle()
        assert desk.store_writer.groups == 2
        assert desk.store_writer.applied == 40
        assert desk.told == dict.fromkeys(range(40))

    play(story, Store.open(disk, SPEC, LAYOUT))


def test_what_is_refused_when_it_is_looked_into_holds_up_nothing_else() -> None:
    async def story(desk: Desk) -> None:
        desk.store_writer.do(Hold(ALL))
        for chunk in (1, UNWELCOME, 2):
            desk.apply(chunk)
        await desk.store_writer.idle()
        assert desk.told == {1: None, UNWELCOME: "not this one", 2: None}
        assert dict(desk.store.digests()) == taught([1, 2])

    play(story)


def test_what_the_founder_withdraws_is_withdrawn_little_by_little() -> None:
    liar = AUTHORS[0]

    def listed(chunks: Iterable[int]) -> Listed:
        roots = {(JOB, chunk): LESSONS.tree(chunk).root for chunk in chunks}
        return Listed(liar.peer, roots=roots)

    async def story(desk: Desk) -> None:
        desk.store_writer.do(Hold(ALL))
        for chunk in range(40):
            desk.apply(chunk, author=liar)
        orphans = Orphans()
        desk.store_writer.do(Withdraw(listed(range(38)), 1, orphans))
        desk.apply(50, author=liar)
        await desk.store_writer.idle()
        assert desk.store_writer.withdrawn == 38
        assert dict(desk.store.digests()) == taught([38, 39, 50])
        assert {chunk for _, chunk in roots_in(orphans.page(1, 0).found)} == {38, 39}
        desk.store_writer.do(Withdraw(listed(range(51)), 2, orphans))
        await desk.store_writer.idle()
        assert desk.store_writer.withdrawn == 41
        assert dict(desk.store.digests()) == taught([])
        assert orphans.page(2, 0).found == ()

    play(story)


def test_a_group_has_so_many_bytes() -> None:
    async def story(desk: Desk) -> None:
        desk.store_writer.do(Hold(ALL))
        for chunk in range(20):
            desk.apply(chunk)
        await desk.store_writer.idle()
        assert desk.store_writer.groups == 20

    play(story, options=Options(group_bytes=1))


def test_each_of_a_group_has_its_own_error() -> None:
    async def story(desk: Desk) -> None:
        desk.store_writer.do(Hold(some(0, 1, 2)))
        desk.apply(1, some(0, 1))
        desk.apply(2, some(2, 3))
        desk.apply(3, some(2))
        await desk.store_writer.idle()
        assert desk.told == {1: None, 2: "shard 3 is not held here", 3: None}
        assert desk.store_writer.applied == 2

    play(story)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_comes_in_whatever_order_is_as_if_done_one_by_one(seed: int) -> None:
    chance = random.Random(seed)

    async def story(desk: Desk) -> None:
        plain = Store.in_memory(SPEC, LAYOUT, retain=True)
        for number in range(60):
            shards = some(*sorted(chance.sample(range(16), chance.randrange(1, 6))))
            draw = chance.random()
            if draw < 0.3:
                desk.store_writer.do(Hold(shards))
                plain.hold(shards.tolist())
            elif draw < 0.4:
                await desk.store_writer.idle()  # what is late for these is not to be acknowledged
                desk.store_writer.do(Drop(shards))
                plain.drop(shards.tolist())
            elif draw < 0.95:
                desk.apply(number, shards)
                update = Update.received(
                    JOB, number, shards, LESSONS.parcel(number, shards), plain.limits
                )
                wanted = None
                try:
                    plain.apply([update])
                except UsageError as error:
                    wanted = str(error)
                expected[number] = wanted
            else:
                await asyncio.sleep(chance.random() / 5)
        await desk.store_writer.idle()
        assert desk.told == expected
        assert dict(desk.store.digests()) == dict(plain.digests())
        assert desk.store.sets(range(16)) == plain.sets(range(16))

    expected: dict[int, str | None] = {}
    play(story)


def test_adopting_and_releasing() -> None:
    async def story(desk: Desk) -> None:
        elsewhere = Store.in_memory(SPEC, LAYOUT)
        elsewhere.hold([3])
        elsewhere.apply([lesson(7, elsewhere.limits)._replace(shards=some(3))])
        desk.store_writer.do(Hold(some(3, 4)))
        desk.store_writer.do(Adopt(1, arrived(elsewhere, 3)))
        desk.apply(2, some(3, 4))
        await desk.store_writer.idle()
        assert desk.told == {1: None, 2: None}
        assert sorted(desk.store.applied(3, JOB)) == [2, 7]
        assert sorted(desk.store.retained(JOB)) == [2]
        chunks = Applied().plus(JOB, 2)
        desk.store_writer.do(Release([(np.array(ALL), chunks)]))
        await desk.store_writer.idle()
        assert not desk.store.retained(JOB)

    play(story)


def elsewhere() -> tuple[Store, list[int]]:
    """Return a store with some chunks, and its shards that have connections."""
    store = Store.in_memory(SPEC, LAYOUT)
    store.hold(ALL.tolist())
    store.apply([lesson(chunk, store.limits) for chunk in range(20, 30)])
    shards = [shard for shard in ALL.tolist() if store.content(shard).delta.connections]
    assert len(shards) > 3
    return store, shards


@pytest.mark.parametrize("together", [True, False])
def test_shards_that_wait_are_made_durable_together(together: bool) -> None:
    async def story(desk: Desk) -> None:
        desk.store_writer.do(Hold(ALL))
        theirs, shards = elsewhere()
        for shard in shards:
            desk.store_writer.do(Adopt(shard, arrived(theirs, shard)))
        await desk.store_writer.idle()
        assert desk.told == dict.fromkeys(shards)
        assert desk.store_writer.groups == (1 if together else len(shards))
        mine, wanted = dict(desk.store.digests()), dict(theirs.digests())
        assert [mine[shard] for shard in shards] == [wanted[shard] for shard in shards]

    play(story, options=Options(group_connections=1 << 17 if together else 1))


def test_each_shard_of_a_group_has_its_own_error() -> None:
    async def story(desk: Desk) -> None:
        desk.store_writer.do(Hold(ALL))
        theirs, (first, second, third, *_) = elsewhere()
        lie = msgspec.structs.replace(arrived(theirs, second).manifest, parts=[])
        for number, one in enumerate(
            [
                arrived(theirs, first),
                Import(lie, theirs.limits),
                arrived(theirs, third),
                arrived(theirs, third),  # twice the same is known the second time
            ]
        ):
            desk.store_writer.do(Adopt(number, one))
        desk.apply(9)
        await desk.store_writer.idle()
        assert "do not add up" in str(desk.told.pop(1))
        assert desk.told == dict.fromkeys([0, 2, 3, 9])
        having = {shard for shard in range(16) if 20 in desk.store.applied(shard, JOB)}
        assert having == {first, third}

    play(story)


def test_an_update_that_is_none_is_refused_and_the_others_are_taken_in() -> None:
    async def story(desk: Desk) -> None:
        desk.store_writer.do(Hold(ALL))
        desk.apply(1)
        desk.store_writer.do(Apply(2, [packed(2, ALL, b"none", desk.store)]))
        desk.apply(3)
        await desk.store_writer.idle()
        assert "not a parcel" in str(desk.told.pop(2))
        assert desk.told == {1: None, 3: None}
        assert desk.store_writer.groups == 1
        assert desk.store_writer.applied == 2

    play(story)


def test_to_hold_and_to_drop_are_tried_until_they_are_done(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = FakeDisk()

    async def story(desk: Desk) -> None:
        disk.fail_at(1, errno.ENOSPC, times=3)
        desk.store_writer.do(Hold(ALL))
        desk.apply(1)
        await asyncio.sleep(0.5)
        assert desk.told == {}
        await desk.store_writer.idle()
        assert desk.told == {1: None}
        assert len(desk.store.shards) == 16
        disk.fail_at(1, errno.ENOSPC, times=3)
        divided = asyncio.Event()
        desk.store_writer.double(2 * LAYOUT.shards, lambda void: divided.set())
        await asyncio.sleep(0.5)
        assert not divided.is_set()
        await desk.store_writer.idle()
        assert divided.is_set()
        assert len(desk.store.shards) == 32

    play(story, Store.open(disk, SPEC, LAYOUT))
    assert [record.message for record in caplog.records if "trying again" in record.message]
    assert len(caplog.records) == 2


def test_some_cold_copies_are_written_as_one_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its own outcome; whatever else waits is done in its turn."""
    groups = list[list[Change]]()

    async def story(desk: Desk) -> None:
        carry_out, cool = desk.store_writer._carry_out, desk.store.cool

        def carried_out(changes: Sequence[Change]) -> list[GiaannError | None] | None:
            groups.append(list(changes))
            return carry_out(changes)

        def cooled(shard: int, now: float) -> None:
            if shard == 3:
                raise DiskError("no room")
            cool(shard, now)

        monkeypatch.setattr(desk.store_writer, "_carry_out", carried_out)
        monkeypatch.setattr(desk.store, "cool", cooled)
        cools = [Cool(number, number, 0.0) for number in range(ALL.size)]
        again = [Cool(100 + number, number, 0.0) for number in range(2)]
        release = Release([])
        for change in (Hold(ALL), *cools, *again, release, *again):
            desk.store_writer.do(change)
        await desk.store_writer.idle()
        assert [*map(len, groups)] == [1, 16, 2, 1, 2]
        assert groups[3] == [release]
        assert desk.told == dict.fromkeys([*range(16), 100, 101]) | {3: "no room"}
        assert sorted(desk.store.cold.copies) == [shard for shard in ALL.tolist() if shard != 3]

    play(story, Store.open(FakeDisk(), SPEC, LAYOUT))


def test_what_the_disk_refuses_is_told_and_may_come_again() -> None:
    disk = FakeDisk()

    async def story(desk: Desk) -> None:
        desk.store_writer.do(Hold(ALL))
        await desk.store_writer.idle()
        disk.fail_at(1, errno.EIO, times=1000)
        for chunk in (1, 2):
            desk.apply(chunk)
        await desk.store_writer.idle()
        assert all("Input/output error" in str(desk.told[chunk]) for chunk in (1, 2))
        disk.fail_at(1, errno.EIO, times=0)
        desk.apply(1)
        desk.apply(2)
        await desk.store_writer.idle()
        assert desk.told == {1: None, 2: None}
        assert dict(desk.store.digests()) == taught([1, 2])

    play(story, Store.open(disk, SPEC, LAYOUT))


@pytest.mark.parametrize("what", ["apply", "hold", "drop", "adopt", "release", "sets", "double"])
def test_a_mistake_ends_it(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(desk: Desk) -> None:
        def fails(*_: object) -> None:
            raise ZeroDivisionError("a mistake")

        monkeypatch.setattr(desk.store, what, fails)
        chunks = Applied().plus(JOB, 1)
        for deed in (Hold(ALL), Drop(ALL), Release([(np.array(ALL), chunks)])):
            desk.store_writer.do(deed)
        elsewhere = Store.in_memory(SPEC, LAYOUT)
        elsewhere.hold([3])
        desk.store_writer.do(Adopt(1, arrived(elsewhere, 3)))
        desk.apply(1)
        if what == "double":
            desk.store_writer.double(2 * LAYOUT.shards, lambda void: None)
        with pytest.raises(ZeroDivisionError, match="a mistake"):
            await desk.task

    play(story)


@pytest.mark.parametrize(
    "change",
    [
        lambda desk: desk.apply(1),
        lambda desk: desk.store_writer.double(2 * LAYOUT.shards, lambda void: None),
    ],
    ids=["apply", "double"],
)
def test_a_store_that_takes_no_writes_any_more_ends_it(change: Callable[[Desk], None]) -> None:
    async def story(desk: Desk) -> None:
        desk.store_writer.do(Hold(ALL))
        await desk.store_writer.idle()
        desk.store.close()
        change(desk)
        with pytest.raises(UsageError, match="this store is closed"):
            await desk.task

    play(story)


def test_a_snapshot_is_made_when_it_is_time_and_again_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal, "_LEAST_LOG", 1)
    disk = FakeDisk()

    async def story(desk: Desk) -> None:
        disk.fail_at(4, errno.ENOSPC)  # behind the holding
        desk.store_writer.do(Hold(ALL))
        await asyncio.sleep(0.2)
        assert desk.store_writer.snapshots == 0
        desk.apply(1)
        await asyncio.sleep(30)
        assert desk.store_writer.snapshots == 0
        await asyncio.sleep(40)
        for chunk in range(2, 20):
            desk.apply(chunk)
            await asyncio.sleep(0.2)
        assert desk.store_writer.snapshots >= 1
        assert not desk.store.snapshot_due
        assert dict(desk.store.digests()) == taught(range(1, 20))

    play(story, Store.open(disk, SPEC, LAYOUT))


def test_with_a_real_thread_the_loop_goes_on_while_the_disk_takes_its_time(tmp_path: Path) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        with Store.at(tmp_path, SPEC, LAYOUT) as store, ThreadPoolExecutor(2) as executor:
            desk = Desk(store, write=executor)
            desk.store_writer.do(Hold(ALL))
            await desk.store_writer.idle()
            may_go_on, began = threading.Event(), asyncio.Event()
            apply = store.apply

            def slowly(updates: list[Update]) -> list[Shards]:
                loop.call_soon_threadsafe(began.set)
                assert may_go_on.wait(5)
                return apply(updates)

            store.apply = slowly  # type: ignore[assignment, method-assign]
            desk.apply(1)
            await began.wait()
            for chunk in range(2, 50):
                desk.apply(chunk)
            assert desk.holdings.sets([0])[0] == Applied()  # told without waiting
            assert desk.told == {}
            may_go_on.set()
            await desk.store_writer.idle()
            assert desk.told == dict.fromkeys(range(1, 50))
            assert desk.store_writer.groups == 2
            may_go_on.clear()
            began.clear()
            desk.apply(50)
            await began.wait()
            desk.task.cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not desk.task.done()  # what was begun is done first
            may_go_on.set()
            await desk.end()
            assert dict(store.digests()) == taught(range(1, 51))

    asyncio.run(main())
