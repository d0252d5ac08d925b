"""Processes that learn: what comes of a chunk, and what is said when there comes nothing of it."""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import torch

from giaann_p2p.node.training.learn_workers import (
    ForkedWorker,
    LearnWorker,
    ThreadWorker,
    WorkerGone,
    learn_workers,
)
from giaann_p2p.node.training.learner import Learner, Made, Task
from giaann_p2p.node.training.pool import Pool
from tests.unit.local.helpers import eventually
from tests.unit.node.helpers import LAYOUT


class Odd:
    """Does with a text what the text says, instead of learning it."""

    def learn(self, task: Task) -> Made:
        (word,) = task.sentences
        if word == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        elif word == "leave":
            os._exit(3)
        elif word == "fail":
            raise ValueError("no such luck")
        elif word == "hang":
            time.sleep(60)
        return Made({}, word.encode(), b"", os.getpid(), [])


def odd() -> Learner:
    return Odd()  # type: ignore[return-value]


def broken() -> Learner:
    raise MemoryError("there is none left")


def task(word: str) -> Task:
    return Task([word], [], LAYOUT)


@pytest.fixture
def beside() -> Iterator[ForkedWorker]:
    hand = ForkedWorker(within=1.0)
    hand.teach(odd)
    yield hand
    hand.end()
    assert not Path(f"/proc/{hand._pid}").exists()


def said(found: Made | str) -> str:
    return found if isinstance(found, str) else found.whole.decode()


def test_what_is_learned_is_learned_elsewhere(beside: ForkedWorker) -> None:
    found = beside.learn(task("word"))
    assert isinstance(found, Made)
    assert found.whole == b"word"
    assert found.sequences not in (os.getpid(), beside._pid)
    again = beside.learn(task("another"))
    assert isinstance(again, Made)
    assert again.sequences == found.sequences


@pytest.mark.parametrize(
    ("word", "why"),
    [
        (
            "die",
            "the process that parsed it died of signal 9, perhaps because memory ran out",
        ),
        ("leave", "the process that parsed it died"),
        ("fail", "ValueError: no such luck"),
        ("hang", "learning it took more than 1 s"),
    ],
)
def test_what_nothing_comes_of_is_told_and_the_next_one_is_learned(
    beside: ForkedWorker, word: str, why: str
) -> None:
    for _ in range(2):
        assert said(beside.learn(task(word))) == why
        assert said(beside.learn(task("word"))) == "word"


def test_who_cannot_learn_at_all_says_why_each_time() -> None:
    for hand in (ThreadWorker(), ForkedWorker()):
        hand.teach(broken)
        for _ in range(2):
            assert said(hand.learn(task("word"))) == "MemoryError: there is none left"
        hand.end()


def test_with_its_owner_all_of_it_ends() -> None:
    hand = ForkedWorker()
    hand.teach(odd)
    found = hand.learn(task("word"))
    assert isinstance(found, Made)
    hand._line.send(task("hang"))
    hand.end()
    eventually(lambda: not Path(f"/proc/{found.sequences}").exists())


def test_nobody_is_left_to_learn_when_the_guard_was_killed() -> None:
    hand = ForkedWorker()
    hand.teach(odd)
    os.kill(hand._pid, signal.SIGKILL)
    with pytest.raises(WorkerGone):
        hand.learn(task("word"))
    hand.end()
    with pytest.raises((WorkerGone, OSError)):
        hand.learn(task("word"))


def test_ctrl_c_is_not_for_them(beside: ForkedWorker) -> None:
    found = beside.learn(task("word"))
    assert isinstance(found, Made)
    for pid in (beside._pid, found.sequences):
        os.kill(pid, signal.SIGINT)
        os.kill(pid, signal.SIGTERM)
    assert said(beside.learn(task("word"))) == "word"


def test_so_many_processes_or_a_thread() -> None:
    found = learn_workers(2)
    assert [type(hand) for hand in found] == [ForkedWorker, ForkedWorker]
    assert repr(found[0]).startswith("<ForkedWorker: process ")
    for hand in found:
        hand.teach(odd)
        hand.end()
    assert [type(hand) for hand in learn_workers(0)] == [ThreadWorker]
    assert repr(ThreadWorker()) == "<ThreadWorker>"
    reason = "this worker has no learner: `teach` was not called"
    assert said(ThreadWorker().learn(task("word"))) == reason


def test_where_cuda_was_used_no_process_is_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert [type(hand) for hand in learn_workers(2)] == [ThreadWorker]


# Pools.


def with_pool(some: list[LearnWorker], story: Callable[[Pool], Awaitable[None]]) -> None:
    async def main() -> None:
        pool = Pool(some, odd)
        await story(pool)
        await pool.close()

    asyncio.run(main())


def test_all_hands_work_side_by_side_and_none_does_two_things() -> None:
    async def story(pool: Pool) -> None:
        found = await asyncio.gather(*[pool.learn(task(str(n))) for n in range(20)])
        assert [said(one) for one in found] == [str(n) for n in range(20)]
        assert len({one.sequences for one in found if isinstance(one, Made)}) == 2
        assert repr(pool) == "<Pool: 0 of 2 work>"

    with_pool([ForkedWorker(), ForkedWorker()], story)


def test_who_waits_no_more_leaves_the_hand_at_its_work() -> None:
    async def story(pool: Pool) -> None:
        asking = asyncio.create_task(pool.learn(task("hang")))
        await asyncio.sleep(0.1)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        assert said(await pool.learn(task("word"))) == "word"

    with_pool([ForkedWorker(within=0.5)], story)


def test_a_thread_takes_the_place_of_a_process_that_cannot_be_made_anew() -> None:
    hand = ForkedWorker()

    async def story(pool: Pool) -> None:
        os.kill(hand._pid, signal.SIGKILL)
        assert said(await pool.learn(task("word"))) == "the process that parsed it has ended"
        found = await pool.learn(task("word"))
        assert isinstance(found, Made)
        assert found.sequences == os.getpid()

    with_pool([hand], story)
