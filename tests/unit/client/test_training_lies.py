"""Compute peers that lie about what they learned, or about who has it."""

import asyncio

import pytest

from giaann_p2p.client.trained import LackingPeers
from giaann_p2p.client.training import TrainOptions
from giaann_p2p.node.training.learner import Made, Task
from giaann_p2p.swarm.training import writer
from giaann_p2p.swarm.training.pushed_chunk import Cut
from giaann_p2p.swarm.training.writer import Committed
from giaann_p2p.swarm.wire.identity import Peer, name_of
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Refusal, decode
from giaann_p2p.swarm.wire.training_messages import Beat
from giaann_p2p.swarm.wire.voucher import Sealing
from tests.unit.client.test_training import TEXT, founded, holds
from tests.unit.node.helpers import Town, play
from tests.unit.node.training.helpers_compute import Workshop, written


def test_a_liar_is_found_named_and_learns_no_more_and_nothing_of_its_is_kept() -> None:
    async def story(town: Town) -> None:
        visitor = await founded(town)
        shops = [Workshop(town, number) for number in (101, 102, 103)]
        liar, learn = shops[0], shops[0].slow.learn

        async def lie(task: Task) -> Made | str:
            return await learn(task._replace(sentences=task.sentences[:-1]))

        liar.slow.learn = lie  # type: ignore[method-assign]
        await town.until(lambda: len(visitor.workers()) == 3)
        (report,) = await visitor.trainer.train(TEXT, TrainOptions(redundancy=2))
        assert report.complete
        assert report.liars == {name_of(liar.me)}
        await town.until(holds(town, TEXT))
        tried = len(liar.slow.learned)
        reports = await visitor.trainer.train(TEXT, TrainOptions(epochs=2, redundancy=2))
        assert all(one.complete for one in reports)
        assert len(liar.slow.learned) == tried
        for shop in shops:
            await shop.end()
        await visitor.close()

    play(story)


def boasts(shop: Workshop) -> None:
    """Let a compute peer say that it has brought what it learned, and bring nothing."""

    def push(
        job: bytes, chunk: int, cut: Cut, seal: Sealing, now: float, shards: int
    ) -> list[writer.WriteAction]:
        return [Committed(job, chunk)]

    shop.node.worker._writer.push = push  # type: ignore[method-assign]


def test_who_says_it_brought_what_no_owner_has_is_named_and_others_learn_that() -> None:
    async def story(town: Town) -> None:
        visitor = await founded(town)
        shops = [Workshop(town, number) for number in (101, 102, 103)]
        idle = shops[0]
        boasts(idle)
        await town.until(lambda: len(visitor.workers()) == 3)
        (report,) = await visitor.trainer.train(TEXT, TrainOptions(check=0))
        assert report.complete
        assert report.liars == set()
        assert report.unbrought == {name_of(idle.me): len(idle.slow.learned)}
        assert (report.chunks, report.sentences) == (10, 640)
        tried = len(idle.slow.learned)
        assert sum(len(shop.slow.learned) for shop in shops) == 10 + tried
        assert tried > 0
        await town.until(holds(town, TEXT))
        other = written(320, seed=1)
        (report,) = await visitor.trainer.train(other, TrainOptions(check=0))
        assert (report.complete, report.unbrought) == (True, {})
        assert len(idle.slow.learned) == tried
        for shop in shops:
            await shop.end()
        await visitor.close()

    play(story)


def test_where_nobody_else_is_there_it_waits_for_others_and_says_why() -> None:
    async def story(town: Town) -> None:
        visitor = await founded(town)
        idle = Workshop(town, 101)
        boasts(idle)
        await town.until(lambda: len(visitor.workers()) == 1)
        words = rf"{name_of(idle.me)} gave false results or reports.*no compute peer.*waited 20 s"
        with pytest.raises(LackingPeers, match=words):
            await visitor.trainer.train(TEXT, TrainOptions(patience=20))
        running = asyncio.create_task(visitor.trainer.train(TEXT))
        await asyncio.sleep(10)
        shop = Workshop(town, 102)  # just in time
        (report,) = await running
        assert report.complete
        assert len(shop.slow.learned) == 10
        await town.until(holds(town, TEXT))
        for one in (idle, shop):
            await one.end()
        await visitor.close()

    play(story)


def test_a_word_with_a_token_that_no_owner_takes_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(town: Town) -> None:
        visitor, told = await founded(town), list[Message]()
        shops = [Workshop(town, number) for number in (101, 102, 103)]
        bare, answer = shops[0], visitor.trainer._answer
        bare.node.gate.token = b"another's"

        def authored(peer: Peer, token: bytes) -> str:
            return "this token is another's" if token else ""

        async def heard(peer: bytes, body: bytes) -> bytes:
            data, question = await answer(peer, body), decode(body)
            if peer == bare.me and isinstance(question, Beat) and question.results:
                told.append(decode(data))
            return data

        monkeypatch.setattr(visitor.visit.gate.admission, "authored", authored)
        visitor.transport.serve(heard)
        await town.until(lambda: len(visitor.workers()) == 3)
        (report,) = await visitor.trainer.train(TEXT, TrainOptions(redundancy=2))
        assert report.complete
        assert told
        assert all(one == Refusal("came: this token is another's") for one in told)
        for shop in shops:
            await shop.end()
        await visitor.close()

    play(story)
