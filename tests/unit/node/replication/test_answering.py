"""Answers beside the loop: bounded, and true although the store changes meanwhile."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from giaann_p2p.model.rows import Neuron, Question
from giaann_p2p.net.clock import VirtualLoop
from giaann_p2p.node.options import Options
from giaann_p2p.node.replication.answering import Answering
from giaann_p2p.sim.lessons import SPEC
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.store import Store
from giaann_p2p.store.transfer import Manifest
from giaann_p2p.store.update import anything
from giaann_p2p.swarm.replication.answers import Answers
from giaann_p2p.swarm.replication.carried_deltas import CarriedDeltas
from giaann_p2p.swarm.replication.delta_checks import DeltaChecks
from giaann_p2p.swarm.wire.division import DIVIDING
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import (
    AskDigests,
    AskPart,
    AskProof,
    Carry,
    Compare,
    Compared,
    Fetch,
    FetchCarried,
    Fetched,
    Offer,
    Offered,
    Part,
    Refusal,
)
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.row_messages import Read, ReadSlice, Rows
from giaann_p2p.swarm.wire.shardset import packed, unpacked
from giaann_p2p.swarm.wire.training_messages import LearnAck
from tests.unit.node.helpers import ALL, JOB, LAYOUT, LESSONS, SlowLoop, lesson

SHARDS_OF_ALL = packed(ALL, LAYOUT.shards)
CARRIED = FetchCarried(bytes(16), 1, SHARDS_OF_ALL, Peer(bytes(32)))
CHECKS = DeltaChecks(SPEC, lambda: Rules(LAYOUT.shards), anything)


class Place:
    """A store with a few chunks, all of it ready, and who answers for it."""

    def __init__(self, options: Options | None = None) -> None:
        self.store = Store.in_memory(SPEC, LAYOUT, retain=True)
        self.store.hold(ALL.tolist())
        self.store.apply([lesson(chunk, self.store.limits) for chunk in range(8)])
        self.states = [ReplicaState.READY] * LAYOUT.shards
        self.answering = Answering(self.store, self.states.__getitem__, options=options)
        self.plain = Answers(self.store, self.states.__getitem__)

    def all_questions(self) -> list[Message]:
        chunks = Applied().plus(JOB, 3)
        return [
            read(1),
            read(30),
            Compare(SHARDS_OF_ALL, [b"other"] * LAYOUT.shards),
            Fetch(SHARDS_OF_ALL, chunks.to_bytes()),
            AskDigests(SHARDS_OF_ALL),
            Offer(3),
            AskPart(3, b"no digest", 0),
            LearnAck(),
            Read(b"123", b""),
            ReadSlice(read(1).concepts, read(1).features, 1, 0),
            Compare(b"rubbish", []),
        ]


def read(neurons: int) -> Read:
    known = [neuron for chunk in range(8) for neuron in LESSONS.neurons(chunk)][:neurons]
    assert len(known) == neurons
    concepts, features = zip(*known, strict=True)
    return Read(np.array(concepts, "<u8").tobytes(), np.array(features, "<u8").tobytes())


def play(
    story: Callable[[Place], Awaitable[None]],
    options: Options | None = None,
    loop: type[VirtualLoop] = SlowLoop,
) -> None:
    async def main() -> None:
        place = Place(options)
        await story(place)
        await place.answering.end()
        assert repr(place.answering) == "<Answering: 0 questions wait>"
        assert len(asyncio.all_tasks()) == 1

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main())


def test_every_answer_is_what_it_would_be_at_once() -> None:
    async def story(place: Place) -> None:
        for question in place.all_questions():
            assert await place.answering.to(question) == place.plain.to(question), question

    play(story)


def test_a_comparison_is_answered_at_once_only_from_a_snapshot_without_a_difference() -> None:
    async def story(place: Place) -> None:
        marks = [mine.digest for mine in place.store.sets(range(LAYOUT.shards)).values()]
        same, other = (Compare(SHARDS_OF_ALL, some) for some in (marks, [b"other", *marks[1:]]))
        assert place.answering.alike(same) is None
        seeing = Answering(place.store, place.states.__getitem__, held=place.store.sets)
        assert seeing.alike(same) == place.plain.to(same)
        assert seeing.alike(other) is None

    play(story)


def test_a_shard_can_be_had_part_by_part() -> None:
    async def story(place: Place) -> None:
        shard = LAYOUT.shard_of(*LESSONS.neurons(1)[0])
        offered = await place.answering.to(Offer(shard))
        assert isinstance(offered, Offered)
        digest = Manifest.from_bytes(offered.manifest).digest
        parts = [place.answering.to(AskPart(shard, digest, 0)) for _ in range(3)]
        assert all(isinstance(part, Part) for part in await asyncio.gather(*parts))

    play(story)


def test_small_questions_for_rows_wait_for_nobody_and_the_others_have_their_bound() -> None:
    async def story(place: Place) -> None:
        loop = asyncio.get_running_loop()
        waiting = [asyncio.ensure_future(place.answering.to(read(30))) for _ in range(3)]
        await asyncio.sleep(0)
        begun = loop.time()
        refused = await place.answering.to(read(30))
        assert isinstance(refused, Refusal)
        assert refused.reason.startswith("busy")
        assert isinstance(await place.answering.to(read(2)), Rows)
        assert loop.time() == begun
        assert all(isinstance(answer, Rows) for answer in await asyncio.gather(*waiting))
        assert isinstance(await place.answering.to(read(30)), Rows)

    play(story, Options(waiting=3))


def test_a_question_for_a_few_long_rows_is_a_threads_work() -> None:
    async def story(place: Place) -> None:
        question = read(2)
        (concept, feature) = (
            np.frombuffer(half, "<u8") for half in (question.concepts, question.features)
        )
        place.store.compact()
        many = place.store.connections_of(concept, feature)
        rows = place.store.read(Question(list(map(Neuron, concept.tolist(), feature.tolist()))))
        assert many == sum(len(row.target) for row in rows if row) > 0
        for most, at_once in ((many, True), (many - 1, False)):
            answering = Answering(
                place.store, place.states.__getitem__, options=Options(inline_connections=most)
            )
            assert (answering.at_once(question) is not None) == at_once
            assert await answering.to(question) == place.plain.to(question)
        assert isinstance(place.answering.at_once(Read(b"123", b"")), Refusal)

    play(story)


def test_who_stops_waiting_makes_room_and_leaves_no_thread_behind() -> None:
    async def story(place: Place) -> None:
        for _ in range(5):
            asked = asyncio.ensure_future(place.answering.to(read(30)))
            await asyncio.sleep(0.01)
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
            assert place.answering.busy  # a thread still works for it
        await place.answering.end()
        assert not place.answering.busy

    play(story, Options(waiting=1))


@pytest.mark.parametrize(
    "asking",
    [Offer, lambda number: FetchCarried(bytes(16), number, SHARDS_OF_ALL, Peer(bytes(32)))],
    ids=["offers", "carried rows"],
)
def test_what_nobody_waits_for_any_more_fills_no_queue_and_is_not_worked_at(
    asking: Callable[[int], Message],
) -> None:
    async def main() -> None:
        place, begun, go = Place(Options(waiting=4)), list[Message](), threading.Event()

        def slow(question: Message, doublings: int | None) -> Message:
            begun.append(question)
            go.wait()
            return LearnAck()

        place.answering._answers.to = slow  # type: ignore[method-assign]
        with ThreadPoolExecutor(2) as threads:
            place.answering._executor = threads
            for shard in range(50):
                asked = asyncio.ensure_future(place.answering.to(asking(shard)))
                await asyncio.sleep(0.001)
                asked.cancel()
                await asyncio.gather(asked, return_exceptions=True)
                assert threads._work_queue.qsize() <= 4
            assert begun == [asking(0)]  # one at a time
            assert place.answering.busy
            go.set()
            await place.answering.end()
            assert begun == [asking(0)]
            assert await place.answering.to(asking(1)) == LearnAck()

    asyncio.run(main())


def test_one_peer_does_not_keep_the_threads_from_others() -> None:
    async def story(place: Place) -> None:
        many = [asyncio.ensure_future(place.answering.to(read(30), b"one")) for _ in range(5)]
        await asyncio.sleep(0)
        other = await place.answering.to(read(30), b"other")
        assert isinstance(other, Rows)
        answers = await asyncio.gather(*many)
        assert [isinstance(answer, Rows) for answer in answers] == [True, True, False, False, False]
        assert place.answering._of_peers == {}

    play(story, Options(waiting=3, waiting_of_peer=2))


@pytest.mark.parametrize(
    ("many", "one"),
    [
        (AskDigests(SHARDS_OF_ALL), AskProof(SHARDS_OF_ALL, Applied().to_bytes(), bytes(16))),
        (Offer(3), AskPart(3, b"no digest", 0)),
        (CARRIED, CARRIED),
        (Fetch(SHARDS_OF_ALL, Applied().plus(JOB, 3).to_bytes()), read(40)),
        (read(30), AskProof(SHARDS_OF_ALL, Applied().to_bytes(), bytes(16))),
    ],
    ids=["digests", "offers", "carried rows", "deltas", "rows"],
)
def test_a_peers_question_waits_for_no_more_than_one_question_of_another_that_asks_much(
    many: Message, one: Message
) -> None:
    async def story(place: Place) -> None:
        over = list[bytes]()

        async def ask(question: Message, peer: bytes) -> None:
            await place.answering.to(question, peer)
            over.append(peer)

        asked = [asyncio.ensure_future(ask(many, b"much")) for _ in range(8)]
        await asyncio.sleep(0)
        asked += [asyncio.ensure_future(ask(one, b"little")) for _ in range(2)]
        await asyncio.gather(*asked)
        assert over.index(b"little") <= 2
        assert over[:6].count(b"little") == 2
        assert len(over) == 10

    play(story, Options(threads=1))


@pytest.mark.parametrize("when", [0.01, 0.04])
def test_rows_of_a_shard_that_is_let_go_meanwhile_are_said_to_have_moved(when: float) -> None:
    async def story(place: Place) -> None:
        asked = asyncio.ensure_future(place.answering.to(read(30)))
        await asyncio.sleep(when)
        place.states[:8] = [ReplicaState.ABSENT] * 8
        place.store.drop(range(8))
        answer = await asked
        assert isinstance(answer, Rows)
        moved = unpacked(answer.moved, LAYOUT.shards).tolist()
        assert moved
        assert max(moved) < 8
        assert answer == place.plain.to(read(30))

    play(story)


@pytest.mark.parametrize("when", [0.0, 0.01, 0.03])
def test_a_slice_of_a_shard_that_is_let_go_meanwhile_is_said_to_have_moved(when: float) -> None:
    async def story(place: Place) -> None:
        one = read(1)
        home = LAYOUT.shard_of(*LESSONS.neurons(0)[0])
        within = ReadSlice(one.concepts, one.features, 1, 0)
        asked = asyncio.ensure_future(place.answering.to(within))
        await asyncio.sleep(when)
        place.states[home] = ReplicaState.ABSENT
        place.store.drop([home])
        answer = await asked
        assert isinstance(answer, Rows)
        assert unpacked(answer.moved, LAYOUT.shards).tolist() == [home]

    play(story)


def test_rows_of_shards_that_go_one_after_the_other_are_refused_in_the_end() -> None:
    async def story(place: Place) -> None:
        question = read(60)
        asked = asyncio.ensure_future(place.answering.to(question))
        numbers = (np.frombuffer(half, "<u8") for half in (question.concepts, question.features))
        for shard in np.unique(LAYOUT.shards_of(*numbers)).tolist():
            await asyncio.sleep(0.02)
            place.states[shard] = ReplicaState.ABSENT
        answer = await asked
        assert isinstance(answer, Refusal)
        assert "are being moved" in answer.reason

    play(story)


def test_what_a_shard_is_was_looked_at_before_its_chunks() -> None:
    """Or it would be told to be ready with chunks of a time when it was not."""

    async def story(place: Place) -> None:
        place.states[3] = ReplicaState.SYNCING
        question = Compare(packed(np.array([3], np.uint16), LAYOUT.shards), [b"other"])
        asked = asyncio.ensure_future(place.answering.to(question))
        await asyncio.sleep(0.01)
        place.states[3] = ReplicaState.READY
        answer = await asked
        assert isinstance(answer, Compared)
        assert answer.states == b"s"

    play(story)


def followed(place: Place, shards: int, absent: range = range(0)) -> None:
    """Divide a place's store, and let its answers follow."""
    place.store.double(shards)
    gone, ready = ReplicaState.ABSENT, ReplicaState.READY
    states = [gone if shard in absent else ready for shard in range(shards)]
    place.answering.follow(states.__getitem__, CarriedDeltas(CHECKS, 1 << 30))


@pytest.mark.parametrize("when", [0.01, 0.04])
@pytest.mark.parametrize("doublings", [0, 1])
def test_rows_are_read_again_by_the_decisions_that_follow_a_doubling(
    when: float, doublings: int
) -> None:
    async def story(place: Place) -> None:
        asked = asyncio.ensure_future(place.answering.to(read(60), doublings=doublings))
        await asyncio.sleep(when)
        followed(place, 2 * LAYOUT.shards, range(8))
        answer = await asked
        assert isinstance(answer, Rows)
        moved = unpacked(answer.moved, LAYOUT.shards << doublings).tolist()
        assert moved
        assert max(moved) < 8
        assert answer == await place.answering.to(read(60), doublings=doublings)

    play(story)


def test_a_small_read_counts_as_it_says() -> None:
    async def story(place: Place) -> None:
        followed(place, 2 * LAYOUT.shards, range(2 * LAYOUT.shards))
        for doublings in (0, 1, None):
            answer = place.answering.at_once(read(3), doublings)
            assert isinstance(answer, Rows)
            layout = LAYOUT.with_shards(LAYOUT.shards << (1 if doublings is None else doublings))
            known = [neuron for chunk in range(8) for neuron in LESSONS.neurons(chunk)][:3]
            shards = {layout.shard_of(*neuron) for neuron in known}
            assert unpacked(answer.moved, layout.shards).tolist() == sorted(shards)

    play(story)


@pytest.mark.parametrize("when", [0.01, 0.04])
def test_what_was_asked_before_a_doubling_is_refused_after_it(when: float) -> None:
    """Its shards are others now: also those of questions that wait for their turn."""

    async def story(place: Place) -> None:
        questions = [
            Compare(SHARDS_OF_ALL, [b"other"] * LAYOUT.shards),
            Fetch(SHARDS_OF_ALL, Applied().plus(JOB, 3).to_bytes()),
            AskDigests(SHARDS_OF_ALL),
            AskDigests(SHARDS_OF_ALL),
            Offer(3),
            Offer(3),
        ]
        asked = [asyncio.ensure_future(place.answering.to(one)) for one in questions]
        await asyncio.sleep(when)
        followed(place, 2 * LAYOUT.shards)
        answers = await asyncio.gather(*asked)
        begun = when < 0.03  # what a thread had done already is right
        refused = [begun, begun, begun, True, begun, True]
        assert [answer == DIVIDING for answer in answers] == refused
        assert isinstance(await place.answering.to(Offer(2 * LAYOUT.shards - 1)), Offered)

    play(story, Options(threads=6))


def test_carried_rows_are_those_of_the_decisions_now() -> None:
    async def story(place: Place) -> None:
        carried = CarriedDeltas(CHECKS, 1 << 30)
        place.answering.follow(place.states.__getitem__, carried)
        seal = LESSONS.tree(1).seal(b"", ALL.tolist())
        carried.keep(
            Carry(JOB, 1, SHARDS_OF_ALL, LESSONS.parcel(1, ALL), seal), Peer(bytes(32)), True, 0.0
        )
        fetch = FetchCarried(JOB, 1, SHARDS_OF_ALL, Peer(bytes(32)))
        assert isinstance(await place.answering.to(fetch), Fetched)
        followed(place, LAYOUT.shards)
        assert isinstance(await place.answering.to(fetch), Refusal)

    play(story)
