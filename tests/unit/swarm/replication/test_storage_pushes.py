"""A storage peer takes in what is pushed to it, or refuses it."""

from dataclasses import replace

import numpy as np
import pytest

from giaann_p2p.errors import DiskError
from giaann_p2p.model.delta import EMPTY
from giaann_p2p.sim.lessons import SPEC
from giaann_p2p.store.applied import WITHDRAWN
from giaann_p2p.store.codec.parcel import encode
from giaann_p2p.swarm.replication import pushes as module
from giaann_p2p.swarm.wire.actions import Apply, Reply
from giaann_p2p.swarm.wire.messages import Push, Refusal
from giaann_p2p.swarm.wire.shardset import packed
from tests.helpers_swarm import (
    JOB,
    LESSONS,
    NOW,
    SHARDS,
    A,
    B,
    C,
    applied,
    make_ready,
    shards,
    states,
    store,
    update,
)
from tests.unit.swarm.replication.helpers_storage import ALL, drained, push, pushed, reply, side_of


def test_a_push_is_taken_in_before_it_is_acknowledged() -> None:
    side = side_of(A)
    (apply,) = side.core.asked(7, B, push(1, 0, 2), NOW)
    assert isinstance(apply, Apply)
    side.store.apply(apply.unpacked())
    (said, *_) = side.core.stored(apply.number, None, NOW)
    assert said == Reply(7, pushed(0, 2))
    assert side.core.stored(apply.number, None, NOW) == []  # once


def test_a_push_is_taken_in_as_far_as_its_shards_are_held() -> None:
    side = side_of(A, B, C, held=[1, 2])
    assert reply(side, push(1, 0, 1, 3)) == pushed(1)
    assert side.store.sets(ALL) == {1: applied(1), 2: applied()}
    assert reply(side, push(1, 0, 3)) == pushed()
    assert side.told(Apply) == []
    assert reply(side, push(1, 1, 2)) == pushed(1, 2)  # again counts once
    assert side.store.sets(ALL) == {1: applied(1), 2: applied(1)}


@pytest.mark.parametrize("letter", "srd")
def test_a_push_is_taken_in_whatever_a_shard_is(letter: str) -> None:
    side = drained(()) if letter == "d" else side_of(A)
    if letter == "r":
        make_ready(side.core.replicas)
    assert states(side.core.replicas) == 4 * letter
    assert reply(side, push(1, *ALL)) == pushed(*ALL)


BAD_PUSHES = {
    "no shards": Push(JOB, 1, b"", b""),
    "shards of another form": Push(JOB, 1, b"\3", b""),
    "no parcel": Push(JOB, 1, packed(shards(1), SHARDS), b"none"),
    "half a parcel": Push(JOB, 1, packed(shards(1), SHARDS), LESSONS.parcel(1, shards(1))[:-1]),
    "no job": Push(b"", 1, packed(shards(1), SHARDS), LESSONS.parcel(1, shards(1))),
    "a chunk below 0": Push(JOB, -1, packed(shards(1), SHARDS), LESSONS.parcel(1, shards(1))),
    "a chunk too high": Push(JOB, 1 << 32, packed(shards(1), SHARDS), LESSONS.parcel(1, shards(1))),
}


@pytest.mark.parametrize("name", BAD_PUSHES)
def test_a_push_of_nonsense_is_refused(name: str) -> None:
    side = side_of(A)
    assert isinstance(reply(side, BAD_PUSHES[name]), Refusal)
    assert side.store.sets([1]) == {1: applied()}


def test_a_push_of_a_job_too_many_is_refused_and_other_jobs_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Strangers can name any number of jobs, and no chunk is ever taken back."""
    monkeypatch.setattr(module, "MOST_BEGUN", 2)
    side = side_of(A)
    assert reply(side, push(1, *ALL)) == pushed(*ALL)
    other, third = b"another job....1", b"another job....2"
    assert reply(side, push(1, 0, 1, job=other)) == pushed(0, 1)
    before = side.store.sets(ALL)
    said = reply(side, push(1, 1, 2, job=third))  # shard 2 would have room
    assert isinstance(said, Refusal)
    assert "have chunks of 2 jobs and take no new job" in said.reason
    assert not said.is_busy
    assert side.store.sets(ALL) == before
    assert reply(side, push(1, 2, job=third)) == pushed(2)
    assert reply(side, push(2, *ALL)) == pushed(*ALL)
    assert reply(side, push(1, 0, 1, job=other)) == pushed(0, 1)  # again


def test_a_job_of_which_all_is_withdrawn_makes_room_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_BEGUN", 1)
    side = side_of(A)
    other = b"another job....1"
    for number in (1, 2):
        assert reply(side, push(number, *ALL)) == pushed(*ALL)
    for number in (1, 2):
        assert isinstance(reply(side, push(1, *ALL, job=other)), Refusal)
        side.store.apply([update(number, *ALL)._replace(chunk=number | WITHDRAWN)])
    assert reply(side, push(1, *ALL, job=other)) == pushed(*ALL)


def test_a_push_of_more_than_a_chunk_can_add_is_refused() -> None:
    side, count = side_of(A), 64 * SPEC.max_tokens + 1
    ones, none = np.ones(count, np.int64), np.zeros(count + 1, np.int64)
    neurons = np.arange(1, count + 1, dtype=np.uint64)
    bomb = replace(EMPTY, concept=neurons, feature=neurons, count=ones, row_starts=none)
    said = reply(side, Push(JOB, 1, packed(shards(1), SHARDS), encode(bomb)))
    assert said == Refusal("neurons: 5121 is above the limit of 5120")


def test_a_push_that_the_store_fails_to_take_in_is_refused() -> None:
    side = side_of(A)
    (apply,) = side.core.asked(7, B, push(1, 0), NOW)
    assert isinstance(apply, Apply)
    assert side.core.stored(apply.number, DiskError("the disk is full"), NOW)[0] == Reply(
        7, Refusal("the disk is full")
    )


def test_a_shard_is_taken_that_fits_into_the_memory_that_is_given() -> None:
    assert side_of(A).core._downloads._most == (1 << 30) // 9


def test_rows_of_other_shards_in_a_push_do_not_count() -> None:
    side = side_of(A)
    everything = LESSONS.parcel(1, shards(*ALL))
    assert reply(side, Push(JOB, 1, packed(shards(2), SHARDS), everything)) == pushed(2)
    assert side.store.content(2).digest == store(chunks=[1]).content(2).digest
    assert side.store.content(0).digest == store().content(0).digest
