"""How much a store writer takes on: updates that wait, their bytes, and how long they take."""

import itertools
from functools import partial

import pytest

from giaann_p2p.node.options import Options
from giaann_p2p.node.replication.store_writer import TOO_LATE
from giaann_p2p.swarm.wire.actions import Hold, Release
from tests.unit.node.helpers import ALL, LESSONS, taught
from tests.unit.node.replication.test_store_writer import Desk, play


def test_it_is_full_of_updates_or_of_their_bytes() -> None:
    async def story(desk: Desk) -> None:
        desk.store_writer.do(Hold(ALL))
        await desk.store_writer.idle()
        for chunk in range(3):
            assert desk.store_writer.fullness < 1
            desk.apply(chunk)
        assert desk.store_writer.fullness >= 1
        await desk.store_writer.idle()
        assert desk.store_writer.fullness < 1
        assert desk.store_writer._nbytes == 0

    play(story, options=Options(queue_deeds=3))
    size = sum(len(LESSONS.parcel(chunk, ALL)) for chunk in range(3))
    play(story, options=Options(queue_bytes=size))


@pytest.mark.parametrize(
    ("anyway", "most"),
    [
        ({"queue_anyway": 1}, 3),  # 0.06 s for one, so 0.18 s for three
        ({"queue_anyway": 5}, 5),
        ({"queue_bytes_anyway": 1}, 3),
        ({}, 10),
    ],
)
def test_it_is_full_of_what_takes_long_unless_it_is_little(
    anyway: dict[str, int], most: int
) -> None:
    async def story(desk: Desk) -> None:
        desk.store_writer.do(Hold(ALL))
        desk.apply(0)
        await desk.store_writer.idle()
        count = 0
        while desk.store_writer.fullness < 1 and count < 10:
            count += 1
            desk.apply(0)
        assert count == most
        await desk.store_writer.idle()
        assert desk.store_writer.fullness < 1
        assert (desk.store_writer._updates, desk.store_writer._nbytes) == (0, 0)

    play(story, options=Options(queue_seconds=0.15, **anyway))  # type: ignore[arg-type]


def test_what_was_done_together_makes_room_for_more() -> None:
    async def story(desk: Desk) -> None:
        desk.store_writer.do(Hold(ALL))
        taken = []
        for _ in range(3):
            count = 0
            while desk.store_writer.fullness < 1 and count < 50:
                count += 1
                desk.apply(0)
            taken.append(count)
            await desk.store_writer.idle()
        assert taken[0] == 50  # nobody knows yet
        assert taken[1] >= 50

    play(story, options=Options(queue_seconds=0.15, queue_anyway=1))


def test_an_update_that_nobody_waits_for_any_more_is_not_begun() -> None:
    async def story(desk: Desk) -> None:
        desk.store_writer.do(Hold(ALL))
        waiting = {1: True, 2: False, 4: True}
        for chunk in (1, 2, 4):
            desk.apply(chunk, wanted=partial(waiting.__getitem__, chunk))
        desk.store_writer.do(Release([]))
        desk.apply(3)  # a repair: it is always wanted
        desk.apply(5, wanted=lambda: False)
        await desk.store_writer.idle()
        assert desk.told == {1: None, 2: TOO_LATE, 3: None, 4: None, 5: TOO_LATE}
        assert dict(desk.store.digests()) == taught([1, 3, 4])
        assert (desk.store_writer._updates, desk.store_writer._nbytes) == (0, 0)
        assert not desk.store_writer._wanted
        desk.apply(5, wanted=lambda: True)
        await desk.store_writer.idle()
        assert desk.told[5] is None

    play(story)


@pytest.mark.parametrize(("seconds", "groups"), [(0.5, 4), (100.0, 1), (0.01, 20)])
def test_a_group_is_what_can_be_unpacked_in_a_moment(seconds: float, groups: int) -> None:
    times = itertools.count()  # each look at the clock, so each update, takes a twentieth second

    async def story(desk: Desk) -> None:
        desk.store_writer.do(Hold(ALL))
        for chunk in range(20):
            desk.apply(chunk)
        await desk.store_writer.idle()
        assert desk.store_writer.groups == groups
        assert desk.told == dict.fromkeys(range(20))
        assert list(desk.told) == list(range(20))
        assert desk.store_writer.applied == 20
        assert dict(desk.store.digests()) == taught(list(range(20)))
        assert (desk.store_writer._updates, desk.store_writer._nbytes) == (0, 0)

    play(story, options=Options(group_seconds=seconds), clock=lambda: next(times) / 20)
