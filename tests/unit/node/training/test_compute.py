"""A compute peer, alive: what it takes, what it refuses, and how it leaves."""

import asyncio

import pytest
from msgspec import UNSET

from giaann_p2p.errors import PeerError
from giaann_p2p.model.digest import digest
from giaann_p2p.model.manner import Manner
from giaann_p2p.model.spec import MOST_CHUNK
from giaann_p2p.node.calls import Calls
from giaann_p2p.node.training.learner import Made, Task, teach
from giaann_p2p.sim.lessons import SPEC
from giaann_p2p.store.codec.parcel import decode as decode_parcel
from giaann_p2p.store.cut_columns import whole
from giaann_p2p.store.cuts import Cut
from giaann_p2p.store.seal import from_bytes
from giaann_p2p.swarm.members.losses import Losses, losses
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.division import COUNTS_OTHERWISE
from giaann_p2p.swarm.wire.edition import Edition
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.limits import of_chunk
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.member_messages import (
    AskEdition,
    AskManifest,
    AskPulses,
    AskRecords,
    AskRelease,
    AskRevoked,
    EditionIs,
    ManifestIs,
)
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import AnyQuestion, Refusal, decode, encode
from giaann_p2p.swarm.wire.prompt_messages import Ask, Continued
from giaann_p2p.swarm.wire.training_messages import (
    Beat,
    BeatAck,
    Learn,
    LearnAck,
    PushOrder,
    Skip,
    learn_order,
)
from tests.helpers_swarm import MESSAGES
from tests.unit.node.helpers import FOUNDER, JOB, LAYOUT, MANIFEST, Town, identity, play
from tests.unit.node.training.helpers_compute import FATAL, Visitor, Workshop

TEXT = ["The bee of 5 makes honey from the flower in a year.", "Go."]
QUESTION = Ask(bytes(16), "The bee", Manner(), b"")


def heard(beat: Beat) -> BeatAck:
    """Return what somebody says who lets all be brought to its owners."""
    return BeatAck([], [PushOrder(result.chunk, [result.voucher]) for result in beat.results])


class Leader:
    """Somebody who has chunks learned, and is told how it goes."""

    def __init__(self, town: Town, shop: Workshop) -> None:
        self.visitor, self.shop = Visitor(town, 230), shop
        self.beats: list[Beat] = []
        self.visitor.transport.serve(self._hear)

    async def _hear(self, peer: Peer, body: bytes) -> bytes:
        beat = decode(body)
        assert isinstance(beat, Beat)
        self.beats.append(beat)
        return encode(heard(beat))

    async def ask(self, question: Message) -> Message:
        call = self.visitor.transport.call(self.shop.me, encode(question), timeout=5.0)
        return decode(await call)

    @property
    def done(self) -> list[int]:
        return [learned.chunk for beat in self.beats for learned in beat.done]


async def founded(town: Town, seconds: float = 1.0) -> tuple[Workshop, Leader]:
    for _ in range(3):
        town.add()
    shop = Workshop(town, 101, seconds)
    leader = Leader(town, shop)
    await town.until(lambda: town.settled() and shop.node.ready)
    return shop, leader


def test_a_chunk_is_learned_pushed_and_told_of() -> None:
    async def story(town: Town) -> None:
        shop, leader = await founded(town)
        assert await leader.ask(Learn(JOB, 7, TEXT)) == LearnAck()
        assert await leader.ask(Learn(JOB, 7, TEXT)) == LearnAck()
        await town.until(lambda: leader.done == [7], 10)
        (learned,) = leader.beats[-1].done
        assert (learned.sequences, learned.skips) == (1, [Skip("too short", 1, 1)])
        assert learned.pushed > 0
        counters = shop.node.counters
        assert (counters.orders, counters.chunks, counters.sentences) == (2, 1, 2)
        assert len(shop.slow.learned) == 1
        assert set(map(len, shop.slow.learned[0].cuts)) == {2 * 16}  # three who have all
        for house in town.houses:
            assert set(house.store.applied(0, JOB)) == {7}
        await leader.visitor.close()
        await shop.end()

    play(story)


def edition(number: int) -> bytes:
    """Return the edition that doubles the shards so often."""
    shards = LAYOUT.shards << number
    return Edition.signed(FOUNDER, MANIFEST.swarm_id, number, 3, shards=shards).to_bytes()


@pytest.mark.parametrize("doublings", [0, 1])
def test_a_chunk_is_sealed_in_the_layout_of_its_order(doublings: int) -> None:
    async def story(town: Town) -> None:
        shop, leader = await founded(town)
        shop.node.gate.learn_edition(edition(1))
        assert await leader.ask(learn_order(JOB, 7, TEXT, doublings)) == LearnAck()
        await town.until(lambda: any(beat.results for beat in leader.beats), 10)
        (task,) = shop.slow.learned
        layout = LAYOUT.doubled(doublings)
        assert task.layout == layout
        assert {*map(len, task.cuts)} == {2 * layout.shards}  # for who has all
        delta = teach(SPEC, "cpu")().learn(Task(TEXT, [], layout))
        tree = from_bytes(delta.leaves, doublings)
        assert {r.root for beat in leader.beats for r in beat.results} == {tree.root}
        await leader.visitor.close()
        await shop.end()

    play(story)


def test_a_chunk_is_cut_as_chunks_of_its_size() -> None:
    cut = Cut("bee", 4)
    swarm = MANIFEST.swarm_id
    cutting = Edition.signed(FOUNDER, swarm, 1, 3, (128,), cuts=((cut,),)).to_bytes()

    async def story(town: Town) -> None:
        shop, leader = await founded(town)
        order = learn_order(JOB, 7, TEXT, 0, 128)
        assert await leader.ask(order) == EditionIs(b"")  # it knows no such size yet
        shop.node.gate.learn_edition(cutting)
        assert await leader.ask(order) == LearnAck()
        assert await leader.ask(learn_order(JOB, 8, TEXT, 0)) == LearnAck()
        await town.until(lambda: len(shop.slow.learned) == 2, 10)
        tasks = sorted(shop.slow.learned, key=lambda task: not task.layout.cuts)
        assert [task.layout.cuts for task in tasks] == [(cut,), UNSET]
        made = [teach(SPEC, "cpu")().learn(task) for task in tasks]
        cut_apart, plain = (decode_parcel(one.whole, of_chunk(SPEC, MOST_CHUNK)) for one in made)
        assert any("bee\x1f" in name for name in cut_apart.names.values())
        assert digest(whole(cut_apart)) == digest(plain) != digest(cut_apart)
        await leader.visitor.close()
        await shop.end()

    play(story)


def test_who_knows_too_few_shards_for_an_order_is_sent_the_edition() -> None:
    async def story(town: Town) -> None:
        shop, leader = await founded(town)
        question = learn_order(JOB, 7, TEXT, 2)
        assert await leader.ask(question) == EditionIs(b"")
        shop.node.gate.learn_edition(edition(1))
        assert await leader.ask(question) == EditionIs(edition(1))
        assert await leader.ask(question) == COUNTS_OTHERWISE  # not again at once
        await asyncio.sleep(5)
        client = leader.visitor.visit.gate
        client.learn_edition(edition(2))
        calls = Calls(
            leader.visitor.transport, client.rules, lambda error: None, client.weigh_edition
        )
        told = list[Message | None]()
        calls.start(Call(1, shop.me, question, 5.0), told.append)
        await town.until(lambda: shop.node.gate.rules().edition == 2, 5)
        (answer,) = told
        assert isinstance(answer, Refusal)
        assert answer.is_busy
        assert await leader.ask(question) == LearnAck()
        await calls.end()
        await leader.visitor.close()
        await shop.end()

    play(story)


def test_it_says_what_it_is_and_that_it_leaves() -> None:
    async def story(town: Town) -> None:
        shop, leader = await founded(town, seconds=30.0)
        around = leader.visitor.visit.around
        now = leader.visitor.visit.clock
        await town.until(lambda: around.workers(now()) == {shop.me: 2}, 30)
        (said,) = [one for one in around.directory.live(now()) if one.role == "compute"]
        assert (said.device, said.state) == ("cpu", "active")
        assert said.addresses == ("/ip4/10.0.1.101/tcp/4100/p2p/x",)
        await leader.ask(Learn(JOB, 1, TEXT))
        shop.node.leave()
        shop.node.leave()
        assert not shop.node.ready
        assert await leader.ask(Learn(JOB, 2, TEXT)) == Refusal("this peer is leaving")
        await town.until(lambda: around.workers(now()) == {shop.me: 0}, 30)
        await shop.gone()
        assert shop.node.learn_speed.rate > 0
        assert shop.node._record(said).load.writes == shop.node.learn_speed.whole
        assert shop.error is None
        assert leader.done == [1]
        await town.until(lambda: around.workers(now()) == {}, 30)
        with pytest.raises(PeerError):
            await leader.ask(AskManifest())
        await leader.visitor.close()

    play(story)


def test_it_tells_when_shards_were_last_served_after_the_last_storage_peer_has_ended() -> None:
    async def story(town: Town) -> None:
        shop, leader = await founded(town)
        around, now = leader.visitor.visit.around, leader.visitor.visit.clock

        def lost() -> Losses:
            return losses(around.directory, now())

        await town.until(lambda: shop.me in around.workers(now()), 30)
        assert not lost()
        for house in town.houses:
            await house.end()
        await town.until(lambda: bool(lost()), 60)
        assert lost().shards == [*range(LAYOUT.shards)]
        assert now() - 60 < lost().seen < now()
        town.houses[0].begin()
        await town.until(lambda: town.houses[0].node.ready and not lost(), 60)
        await asyncio.sleep(20)
        assert not lost()
        await leader.visitor.close()
        await shop.end()

    play(story)


def test_who_leaves_waits_for_none_that_is_gone() -> None:
    async def story(town: Town) -> None:
        shop, leader = await founded(town)
        await leader.ask(Learn(JOB, 1, TEXT))
        await leader.visitor.close()
        shop.node.leave()
        loop = asyncio.get_running_loop()
        began = loop.time()
        await shop.gone()
        assert loop.time() - began < 20
        assert shop.error is None

    play(story)


def test_it_may_end_at_once_whatever_it_is_at() -> None:
    async def story(town: Town) -> None:
        shop, leader = await founded(town, seconds=1000.0)
        await leader.ask(Learn(JOB, 1, TEXT))
        shop.node.leave()
        await asyncio.sleep(5)
        assert not shop.task.done()
        await shop.end()
        await leader.visitor.close()

    play(story)


def test_what_it_cannot_do_is_refused_in_words() -> None:
    async def story(town: Town) -> None:
        shop, leader = await founded(town, seconds=100.0)
        found = await leader.ask(AskManifest())
        assert isinstance(found, ManifestIs)
        assert Manifest.read(found.manifest, MANIFEST.swarm_id) == MANIFEST
        assert await leader.ask(QUESTION) == Refusal(
            "this compute peer answers no prompts; ask another one"
        )
        long = "w" * 20_481
        assert await leader.ask(Learn(JOB, 1, ["Go.", long])) == Refusal(
            "sentences: one has 20,481 characters; at most 20,480 are allowed"
        )
        for chunk, sentences in ((1, ["w" * 20_480]), (2, TEXT)):
            assert await leader.ask(Learn(JOB, chunk, sentences)) == LearnAck()
        assert await leader.ask(Learn(JOB, 3, TEXT)) == Refusal("no slot is free")
        records = AskRecords | AskPulses
        answered = Learn | Ask | AskManifest | records | AskRelease | AskRevoked | AskEdition
        for message in MESSAGES:
            if isinstance(message, AnyQuestion) and not isinstance(message, answered):
                assert isinstance(await leader.ask(message), Refusal)
        with pytest.raises(PeerError, match="cannot be read"):
            await leader.ask(LearnAck())
        with pytest.raises(PeerError):
            await leader.visitor.transport.call(shop.me, b"\xff no message", timeout=5)
        assert shop.node.counters.unreadable == 2
        assert shop.error is None
        await shop.end()
        await leader.visitor.close()

    play(story)


def test_before_it_knows_anybody_it_takes_nothing() -> None:
    async def story(town: Town) -> None:
        town.add()
        town.board.lose(identity(101).peer)
        shop = Workshop(town, 101)
        leader = Leader(town, shop)
        await asyncio.sleep(1)
        answer = await leader.ask(Learn(JOB, 1, TEXT))
        assert isinstance(answer, Refusal)
        assert "has just started" in answer.reason
        town.board.lose(shop.me, lost=False)
        await town.until(lambda: shop.node.ready, 30)
        await leader.visitor.close()
        await shop.end()

    play(story)


def test_what_kills_who_learns_it_is_told_as_failed_and_it_lives_on() -> None:
    async def story(town: Town) -> None:
        shop, leader = await founded(town)
        await leader.ask(Learn(JOB, 1, [f"The {FATAL} makes honey."]))
        await leader.ask(Learn(JOB, 2, TEXT))
        await town.until(
            lambda: leader.done == [2] and any(beat.failed for beat in leader.beats), 10
        )
        failed = dict(entry for beat in leader.beats for entry in beat.failed)
        assert failed == {1: "the process that parsed it died of signal 9"}
        assert shop.node.counters.failed == 1
        assert shop.node.ready
        await leader.visitor.close()
        await shop.end()

    play(story)


def test_what_is_left_is_learned_no_further() -> None:
    async def story(town: Town) -> None:
        shop, leader = await founded(town, seconds=30.0)

        async def leave(peer: Peer, body: bytes) -> bytes:
            return encode(BeatAck([1]))

        leader.visitor.transport.serve(leave)
        await leader.ask(Learn(JOB, 1, TEXT))
        await town.until(lambda: shop.node.worker.busy == 0, 10)
        await asyncio.sleep(40)
        assert shop.slow.learned == []
        assert shop.node._studies == {}
        await leader.visitor.close()
        await shop.end()

    play(story)


def test_prompts_go_to_who_answers_them_and_are_waited_for() -> None:
    async def story(town: Town) -> None:
        asked: list[tuple[Peer, Ask]] = []

        async def answer(peer: Peer, question: Ask) -> Message:
            asked.append((peer, question))
            await asyncio.sleep(3)
            return Continued(" honey", [], [], "end")

        town.add()
        shop = Workshop(town, 101, answering=answer)
        leader = Leader(town, shop)
        await town.until(lambda: shop.node.ready)
        asking = asyncio.create_task(leader.ask(QUESTION))
        await asyncio.sleep(1)
        shop.node.leave()
        assert await asking == Continued(" honey", [], [], "end")
        assert shop.node.token_speed.rate == 0  # the answer has no token
        assert asked == [(leader.visitor.me, QUESTION)]
        await shop.gone()
        await leader.visitor.close()

    play(story)


def test_an_error_that_nobody_planned_for_ends_it() -> None:
    async def story(town: Town) -> None:
        shop, leader = await founded(town)

        async def wrong(task: Task) -> Made | str:
            raise ZeroDivisionError("a mistake")

        shop.slow.learn = wrong  # type: ignore[method-assign]
        await leader.ask(Learn(JOB, 1, TEXT))
        await shop.gone()
        assert isinstance(shop.error, ZeroDivisionError)
        await leader.visitor.close()

    play(story)


def test_who_leaves_tells_again_what_was_not_heard() -> None:
    async def story(town: Town) -> None:
        shop, leader = await founded(town)
        beats: list[Beat] = []

        async def deaf_at_first(peer: Peer, body: bytes) -> bytes:
            beat = decode(body)
            assert isinstance(beat, Beat)
            if beat.results:
                return encode(heard(beat))
            beats.append(beat)
            return encode(BeatAck([]) if len(beats) > 1 else Refusal("not now"))

        leader.visitor.transport.serve(deaf_at_first)
        await leader.ask(Learn(JOB, 1, TEXT))
        shop.node.leave()
        await shop.gone()
        assert len(beats) == 2
        await leader.visitor.close()

    play(story)
