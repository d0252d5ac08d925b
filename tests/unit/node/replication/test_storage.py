"""Storage peers, alive: they find each other, share the shards out, and stay of one mind."""

import asyncio
import logging
from pathlib import Path

import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.net.errors import Reason
from giaann_p2p.net.errors import Refused as Turned
from giaann_p2p.node.options import Options
from giaann_p2p.swarm.members import standing
from giaann_p2p.swarm.replication import known_sets
from giaann_p2p.swarm.wire.actions import Call, Drop
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Compare, Compared, Push, Pushed, Refusal, decode, encode
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.shardset import packed
from giaann_p2p.swarm.wire.training_messages import Beat, LearnAck
from tests.unit.node.helpers import (
    ALL,
    JOB,
    LAYOUT,
    LESSONS,
    Client,
    House,
    SlowLoop,
    Town,
    identity,
    lesson,
    play,
)

SHARDS_OF_ALL = packed(ALL, LAYOUT.shards)


def test_a_swarm_forms_and_every_shard_is_ready_three_times() -> None:
    async def story(town: Town) -> None:
        for _ in range(5):
            town.add()
        await town.until(town.settled)

    play(story)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_chunks_are_learned_while_peers_die_join_and_leave(seed: int) -> None:
    async def story(town: Town) -> None:
        for _ in range(5):
            town.add()
        await town.until(town.settled)
        client = Client(town)
        pushing = asyncio.create_task(client.push_all(range(60), at_once=2))
        await town.until(lambda: len(client.committed) > 10)
        await town.houses[0].die()
        await town.until(lambda: len(client.committed) > 20)
        town.add()
        await town.until(lambda: len(client.committed) > 30)
        town.houses[1].node.leave()
        await pushing
        await town.houses[1].gone()
        assert town.houses[1].error is None
        assert len(town.alive) == 4
        await town.until(lambda: town.settled() and town.holds_what(range(60)))

    play(story, seed=seed)


def test_a_peer_that_comes_back_with_its_disk_catches_up() -> None:
    async def story(town: Town) -> None:
        for _ in range(4):
            town.add()
        client = Client(town)
        await town.until(town.settled)
        await client.push_all(range(10))
        await town.houses[2].die()
        await client.push_all(range(10, 30))
        town.houses[2].come_back()
        await town.until(lambda: town.settled() and town.holds_what(range(30)))

    play(story)


def test_a_swarm_of_which_all_die_at_once_is_what_it_was() -> None:
    async def story(town: Town) -> None:
        for _ in range(3):
            town.add()
        client = Client(town)
        await town.until(town.settled)
        await client.push_all(range(20))
        for house in town.houses:
            await house.die()
        assert town.alive == []
        await asyncio.sleep(100)
        for house in town.houses:
            house.come_back()
        await town.until(lambda: town.settled() and town.holds_what(range(20)))

    play(story)


def test_while_the_board_is_gone_nobody_thinks_itself_alone() -> None:
    async def story(town: Town) -> None:
        for _ in range(5):
            town.add()
        client = Client(town)
        await town.until(town.settled)
        await asyncio.sleep(15)  # the last news is on the board, and seen
        held = [house.node.core.replicas.held.tolist() for house in town.houses]
        town.board.lose(*town.peers)
        await client.push_all(range(5))
        for _ in range(60):
            await asyncio.sleep(10)
            assert [house.node.core.replicas.held.tolist() for house in town.houses] == held
        await client.push_all(range(5, 10))
        neurons = LESSONS.neurons(3)
        assert all(row is not None for row in await client.reading.rows(neurons))
        town.board.lose(*town.peers, lost=False)
        for _ in range(60):
            await asyncio.sleep(0.5)
            assert [house.node.core.replicas.held.tolist() for house in town.houses] == held
        await town.until(lambda: town.settled() and town.holds_what(range(10)))

    play(story)


def test_a_peer_without_a_board_decides_nothing_and_says_so() -> None:
    async def story(town: Town) -> None:
        me = identity(1).peer
        town.board.lose(me)
        house = town.add()
        client = Client(town)
        await asyncio.sleep(100)
        assert not house.node.ready
        assert len(house.store.shards) == 0
        push = Push(JOB, 1, SHARDS_OF_ALL, LESSONS.parcel(1, ALL))
        answer = decode(await client.transport.call(me, encode(push), timeout=1))
        assert isinstance(answer, Refusal)
        assert answer.reason.startswith("this peer has just started")
        town.board.lose(me, lost=False)
        await town.until(lambda: house.node.ready)
        assert len(house.store.shards) == LAYOUT.shards

    play(story)


def test_it_waits_for_the_others_from_its_first_look_on_and_not_from_its_beginning() -> None:
    async def story(town: Town) -> None:
        for _ in range(3):
            town.add()
        client = Client(town)
        await town.until(town.settled)
        await client.push_all(range(5))
        for house in town.houses:
            await house.die()
        town.board.lose(town.houses[0].me)
        town.houses[0].come_back()
        await asyncio.sleep(60)
        town.board.lose(town.houses[0].me, lost=False)
        await town.until(lambda: len(town.houses[0].node.core.replicas.held) == 16, 15)
        await asyncio.sleep(10)
        assert not len(town.houses[0].node.core.replicas.all(ReplicaState.READY))

    play(story)


def test_a_request_that_is_no_message_is_refused_and_counted() -> None:
    async def story(town: Town) -> None:
        house, client = town.add(), Client(town)
        half, answer = encode(Pushed(b"\0"))[:-1], encode(LearnAck())
        for body in (b"", b"rubbish", half, answer):
            with pytest.raises(Turned, match="message"):
                await client.transport.call(house.me, body, timeout=1)
        assert house.node.counters.unreadable == 4
        beat = encode(Beat(bytes(16), [], [], []))
        told = decode(await client.transport.call(house.me, beat, timeout=1))
        assert told == Refusal("Beat is not a question")
        assert house.node.counters.refused == 1

    play(story)


def test_a_handler_that_fails_is_told_as_a_failure_and_the_peer_stays_up() -> None:
    async def story(town: Town) -> None:
        for _ in range(3):
            town.add()
        client = Client(town)
        await town.until(town.settled)

        async def fails(question: Message, *asker: object) -> Message:
            raise ZeroDivisionError("a mistake")

        for house in town.houses[:2]:
            house.node.answering.to = fails  # type: ignore[method-assign]
        await client.push_all(range(3))
        for _ in range(20):  # until each was asked first
            rows = await client.reading.rows(LESSONS.neurons(1))  # the third one is right
            assert all(rows)
        assert {str(one["exception"]) for one in town.complaints} == {"a mistake"}
        town.complaints.clear()
        await asyncio.sleep(10)
        town.complaints.clear()
        assert all(house.error is None for house in town.alive)

    play(story)


def test_a_flood_of_pushes_is_refused_beyond_the_bound_and_nothing_is_lost() -> None:
    async def story(town: Town) -> None:
        for _ in range(3):
            town.add(options=Options(queue_deeds=4))
        client = Client(town)
        await town.until(town.settled)
        await client.push_all(range(60), at_once=60)
        refused = [house.node.counters.busy for house in town.houses]
        assert all(refused), refused
        assert all(house.node.counters.pushed == 60 for house in town.houses)
        await town.until(lambda: town.settled() and town.holds_what(range(60)))

    play(story, loop=SlowLoop)


def test_what_has_waited_for_too_long_is_refused_and_taken_in_when_it_comes_again() -> None:
    async def story(town: Town) -> None:
        for _ in range(3):  # a group takes 0.06 s
            town.add(options=Options(queue_patience=0.05))
        client = Client(town)
        await town.until(town.settled)
        await client.push_all(range(20), at_once=20)
        assert min(house.node.counters.busy for house in town.houses) > 0
        await asyncio.sleep(20)
        assert town.holds_what(range(20))

    play(story, loop=SlowLoop)


def test_a_mistake_in_the_store_ends_the_peer_and_says_so() -> None:
    async def story(town: Town) -> None:
        for _ in range(4):
            town.add()
        client = Client(town)
        await town.until(town.settled)

        def fails(*_: object) -> None:
            raise ZeroDivisionError("a mistake")

        bad = town.houses[0]
        bad.store.apply = fails  # type: ignore[assignment, method-assign]
        await client.push_all(range(10))
        await bad.gone()
        assert isinstance(bad.error, ZeroDivisionError)
        await town.until(lambda: town.settled() and town.holds_what(range(10)))

    play(story)


def test_what_is_ready_is_soon_known_to_all() -> None:
    async def story(town: Town) -> None:
        for _ in range(4):
            town.add()
        await town.until(town.settled)
        new = town.add()
        await town.until(lambda: new.node.ready)
        held = new.node.core.replicas.held.tolist()
        assert held

        def known(*houses: House) -> bool:
            outlooks = [house.node.lookout.view for house in houses]
            return all(new.me in one.ready(shard, 0) for one in outlooks for shard in held)

        await town.until(lambda: known(new), 1.2)
        await town.until(lambda: known(*town.houses), 4)

    play(story)


def test_all_that_was_decided_is_done_before_it_ends() -> None:
    async def story(town: Town) -> None:
        house = town.add()
        await town.until(lambda: house.node.ready)
        for shard in range(4):
            house.node.store_writer.do(Drop(ALL[shard : shard + 1]))
        house.node._left.set()
        await house.task
        assert house.store.shards.tolist() == list(range(4, 16))
        await house.gone()

    play(story, loop=SlowLoop)


def test_who_has_left_holds_nothing_any_more_and_the_others_know() -> None:
    async def story(town: Town) -> None:
        for _ in range(4):
            town.add()
        client = Client(town)
        await town.until(town.settled)
        await client.push_all(range(5))
        gone = town.houses[2]
        gone.node.leave()
        gone.node.leave()
        await gone.task
        assert gone.error is None
        assert len(gone.store.shards) == 0
        await gone.gone()
        await asyncio.sleep(5)
        for house in town.alive:
            said = house.node.lookout.view.directory.announcement(gone.me)
            assert said is not None
            assert said.state == "left"
        assert town.settled()

    play(story, loop=SlowLoop)


def test_who_was_taught_nothing_goes_at_once_takes_nothing_more_in_and_says_so() -> None:
    async def story(town: Town) -> None:
        for _ in range(3):
            town.add()
        client = Client(town)
        await town.until(town.settled)
        one, other = town.houses[:2]
        assert not one.node.taught
        one.node.leave()
        one.node.go()
        push = encode(Push(JOB, 1, SHARDS_OF_ALL, LESSONS.parcel(1, ALL)))
        with pytest.raises(Turned, match="this peer has ended"):
            await client.transport.call(one.me, push, timeout=60)
        await client.push(1)  # the others take it
        assert other.node.taught
        await one.gone()
        await asyncio.sleep(5)
        said = other.node.lookout.view.directory.announcement(one.me)
        assert said is not None
        assert said.state == "left"

    play(story, loop=SlowLoop)


def test_who_closes_a_peer_whose_last_words_fail_does_not_wait_for_ever() -> None:
    async def fail(state: str) -> None:
        raise UsageError(f"nobody plans for this, {state}")

    async def story(town: Town) -> None:
        house = town.add()
        node = house.node
        await town.until(lambda: node.ready)
        node.member.presence.say = fail  # type: ignore[method-assign,union-attr]
        node.leave()
        node._left.set()  # nobody is there to take over
        await house.gone()
        assert isinstance(house.error, UsageError)
        async with asyncio.timeout(1):
            await node.close()

    play(story)


def test_who_waits_for_a_peer_that_ends_is_told() -> None:
    async def story(town: Town) -> None:
        for _ in range(3):
            town.add()
        client = Client(town)
        await town.until(town.settled)
        house = town.houses[0]
        push = encode(client.pushed(1))
        told = asyncio.ensure_future(client.transport.call(house.me, push, timeout=60))
        await town.until(lambda: house.node.counters.pushes == 1, every=0.001)
        await house.node.close()
        with pytest.raises(Turned, match="this peer has ended") as caught:
            await told
        assert caught.value.reason is Reason.LEAVING
        with pytest.raises(Turned, match="this peer has ended"):
            await client.transport.call(house.me, push, timeout=60)
        await house.gone()

    play(story, loop=SlowLoop)


def test_what_a_peer_says_of_itself_is_told_once_for_each_change(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)

    async def story(town: Town) -> None:
        for _ in range(4):
            town.add()
        await town.until(town.settled)
        await asyncio.sleep(100)
        town.houses[0].node.leave()
        await town.houses[0].gone()

    play(story)
    told = [one.message for one in caplog.records if one.name == "giaann.storage.1"]
    assert told[0].endswith(": starting; 0 shards on disk")
    assert "ready 11/11 shards" in told
    assert told[-4:] == [
        "draining: handing over 11 shards",
        "ready 0/0 shards, 11 to be handed over",
        "ready 0/0 shards",
        "left",
    ]
    assert len(told) < 15


def test_a_peer_that_never_ran_can_be_closed() -> None:
    async def story(town: Town) -> None:
        house = town.add()
        await house.end()
        await house.node.close()

    play(story)


def test_who_comes_back_with_its_clock_set_back_is_heard_at_once(tmp_path: Path) -> None:
    async def story(town: Town) -> None:
        house = town.add(acquaintances=tmp_path / "peers.json")
        for _ in range(3):
            town.add()
        await town.until(town.settled)
        await asyncio.sleep(60)
        await house.die()
        await asyncio.sleep(100)  # its last record is nowhere on the board any more
        house.skew = -2000.0
        house.come_back()
        await asyncio.sleep(8)
        for other in town.houses[1:]:
            assert house.me in other.node.lookout.view.members(0)

    play(story)


def test_notes_that_cannot_be_read_keep_no_peer_from_its_work(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(town: Town) -> None:
        houses = [town.add() for _ in range(3)]
        await town.until(town.settled)
        for key in (standing.NOTE, known_sets.NOTE):
            houses[0].store.note(key, b"\x93")
        await houses[0].die()
        houses[0].come_back()
        await town.until(town.settled)
        assert houses[0].error is None

    play(story)
    assert "the book of known peers cannot be read" in caplog.text
    assert "the note of each shard's known chunks cannot be read" in caplog.text


def test_who_has_the_same_chunks_is_answered_at_once() -> None:
    async def story(town: Town) -> None:
        one, other = town.add(), town.add()
        await town.until(town.settled)
        marks = [mine.digest for mine in one.store.sets(ALL.tolist()).values()]
        question = Compare(packed(ALL, LAYOUT.shards), marks)
        answer = one.node.reception.answer(other.me, encode(question))
        assert isinstance(answer, bytes)
        compared = decode(answer)
        assert isinstance(compared, Compared)
        assert compared.states == b"r" * LAYOUT.shards

    play(story)


def test_what_was_known_of_shards_is_known_to_who_comes_back() -> None:
    async def story(town: Town) -> None:
        house = town.add()
        await town.until(town.settled)
        house.store.apply([lesson(1, house.store.limits)])
        await town.until(
            lambda: known_sets.NOTE in house.store.notes, within=2 * known_sets.NOTED_EVERY
        )
        await house.die()
        house.come_back()
        assert [*house.node.core.known.of()] == ALL.tolist()

    play(story)


def test_a_peer_does_not_wait_for_ever_for_what_it_carries_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(town: Town) -> None:
        node, answers = town.add().node, list[tuple[object, int, Message | None]]()
        monkeypatch.setattr(node, "_answered", lambda *answer: answers.append(answer))
        monkeypatch.setattr(node.answering, "to", lambda question: asyncio.Event().wait())
        await node._ask_itself(node.core, Call(7, node.me, LearnAck(), 2.0))
        assert answers == [(node.core, 7, None)]

    play(story)
