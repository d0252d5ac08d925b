"""A store whose shards are divided: what waits for that, and what does not."""

import asyncio

import numpy as np
import pytest

from giaann_p2p.node.replication.store_writer import Change
from giaann_p2p.sim.lessons import SPEC
from giaann_p2p.store import journal
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.wire.actions import Apply, Cool, Hold, Note, Release
from tests.unit.node.helpers import ALL, LAYOUT, taught
from tests.unit.node.replication.test_store_writer import (
    Desk,
    play,
)


def test_shards_are_divided_next_and_what_waited_is_void() -> None:
    async def story(desk: Desk) -> None:
        writer, void = desk.store_writer, list[list[Change]]()
        desk.apply(1)
        await asyncio.sleep(0.01)  # the thread has begun
        desk.apply(2, wanted=lambda: True)
        waits = [Hold(ALL), Cool(3, 4, 0.0), Release([])]
        for change in (Note("key", b"value"), *waits):
            writer.do(change)
        writer.double(2 * LAYOUT.shards, void.append)
        assert len(writer) == 6
        await writer.idle()
        ((late, *others),) = void
        assert isinstance(late, Apply)
        assert (late.number, others) == (2, waits)
        assert desk.told == {1: None}
        assert desk.store.notes["key"] == b"value"
        assert dict(desk.store.digests()) == taught([1], 2 * LAYOUT.shards)
        assert (len(writer), writer._updates, writer._nbytes, writer._wanted) == (0, 0, 0, {})

    store = Store.in_memory(SPEC, LAYOUT, retain=True)
    store.hold(ALL.tolist())
    play(story, store)


def test_shards_are_divided_after_a_snapshot_and_updates_go_on_until_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal, "_LEAST_LOG", 1)
    begun, ends = asyncio.Event(), asyncio.Event()

    async def story(desk: Desk) -> None:
        writer, void = desk.store_writer, list[list[Change]]()

        async def snapshot() -> None:
            begun.set()
            await ends.wait()

        monkeypatch.setattr(writer, "_take_snapshot", snapshot)
        writer.do(Hold(ALL))
        desk.apply(1)
        await begun.wait()
        writer.double(2 * LAYOUT.shards, void.append)
        desk.apply(2)
        await asyncio.sleep(1)
        assert (desk.told, void, writer.is_dividing) == ({1: None, 2: None}, [], False)
        assert desk.store.layout == LAYOUT
        ends.set()
        await writer.idle()
        assert (void, writer.is_dividing) == ([[]], False)
        assert desk.store.layout.shards == 2 * LAYOUT.shards

    play(story, Store.open(FakeDisk(), SPEC, LAYOUT))


def test_nobody_waits_for_the_store_while_it_divides_its_shards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = list[Applied]()

    async def story(desk: Desk) -> None:
        double = desk.store.double

        def doubled(shards: int) -> None:
            seen.append(desk.holdings.retained_for(3))
            double(shards)

        monkeypatch.setattr(desk.store, "double", doubled)
        desk.store_writer.do(Hold(ALL))
        desk.apply(1)
        await desk.store_writer.idle()
        desk.store_writer.double(2 * LAYOUT.shards, lambda void: desk.holdings.follow())
        await desk.store_writer.idle()
        seen.append(desk.holdings.retained_for(3))

    desk = play(story)
    assert seen == [Applied(), desk.store.retained_for(3)]
    assert seen[1]


def test_what_follows_when_shards_were_divided_is_done_after_it() -> None:
    async def story(desk: Desk) -> None:
        more = np.arange(2 * LAYOUT.shards, dtype=np.uint16)
        desk.store_writer.double(len(more), lambda void: desk.store_writer.do(Hold(more)))
        await desk.store_writer.idle()
        assert desk.store.shards.tolist() == more.tolist()

    play(story)


def test_what_is_divided_shows_when_it_is_followed() -> None:
    async def story(desk: Desk) -> None:
        desk.store_writer.do(Hold(ALL))
        await desk.store_writer.idle()
        desk.store.cool(3, 0.0)
        followed = list[int]()

        def follow(void: list[Change]) -> None:
            assert desk.store.layout.shards == 2 * LAYOUT.shards
            followed.append(len(desk.holdings.sets(range(100))))
            desk.holdings.follow()
            followed.append(len(desk.holdings.sets(range(100))))

        desk.store_writer.double(2 * LAYOUT.shards, follow)
        while not followed:
            assert [*desk.holdings.cold.copies] == [3] or not desk.holdings.cold.copies
            await asyncio.sleep(0.01)
        assert followed == [LAYOUT.shards, 2 * LAYOUT.shards]
        assert [*desk.holdings.cold.copies] == [3, 19]
        assert (desk.holdings.cold.durable, desk.holdings.cold.changes) == (True, 2)
        assert desk.holdings.cold.nbytes == desk.store.cold.nbytes > 0

    play(story, Store.open(FakeDisk(), SPEC, LAYOUT))
