"""Looking at the board, and being seen on it."""

import asyncio
import itertools
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.net.clock import run
from giaann_p2p.net.memory_board import MemoryBoard
from giaann_p2p.net.transport import Transport
from giaann_p2p.node.clock import Clock, passed
from giaann_p2p.node.members import lookout as module
from giaann_p2p.node.members.acquaintances import Acquaintances
from giaann_p2p.node.members.context import Context
from giaann_p2p.node.members.gate import Gate
from giaann_p2p.node.members.lookout import Lookout
from giaann_p2p.node.members.presence import Presence
from giaann_p2p.node.options import Options
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.wire.identity import Identity, Peer, name_of
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.pulse import (
    MOST_PULSES,
    PULSE_BYTES,
    apart,
    bare,
    batch,
    split,
)
from giaann_p2p.swarm.wire.record import (
    LIFETIME,
    Announcement,
    Role,
    signed,
    signed_as,
)
from giaann_p2p.swarm.wire.shardset import packed
from tests.unit.node.helpers import ALL, EPOCH, GIB, LAYOUT, MANIFEST, identity
from tests.unit.swarm.helpers_pulses import beat, chained

ME = identity(1)
BOUNDS = Options()


def announcement(who: Identity, sequence: int = 1, now: float = EPOCH) -> Announcement:
    return Announcement(
        swarm_id=MANIFEST.swarm_id,
        peer=who.peer,
        role="storage",
        incarnation=7,
        sequence=sequence,
        issued=int(now),
        capacity=GIB,
        ready=packed(ALL, LAYOUT.shards),
    )


class Place:
    """A board, somebody who looks at it, and others whose records are on it."""

    def __init__(self, last: int = 0) -> None:
        loop = asyncio.get_running_loop()
        self.clock = Clock(lambda: EPOCH, loop.time)
        self.board = MemoryBoard(random.Random(0))
        self.around = PeersView(ME.peer, MANIFEST.swarm_id, lambda: Rules(LAYOUT.shards))
        self.restarted: list[Peer] = []
        self.ready = ALL
        view = self.board.view(ME.peer)
        self.lookout = Lookout(
            view,
            self.around,
            MANIFEST.swarm_id,
            self.clock,
            restarted=self.restarted.append,
        )
        transport = cast(Transport, SimpleNamespace(me=ME.peer))  # nobody is called
        context = Context(
            identity=ME,
            manifest=MANIFEST,
            transport=transport,
            board=view,
            gate=Gate(MANIFEST, transport, clock=self.clock),
            clock=self.clock,
            acquaintances=cast(Acquaintances, SimpleNamespace(sequence=last)),
            incarnation=7,
        )
        self.presence = Presence(context, self.lookout, "storage", self._complete)

    def _complete(self, draft: Announcement) -> Announcement:
        return msgspec.structs.replace(draft, capacity=GIB, ready=packed(self.ready, LAYOUT.shards))

    def leave(self, who: Identity, sequence: int = 1, **what: object) -> None:
        """Put a record of somebody's on the board."""
        said = announcement(who, sequence, self.clock())
        record = signed(who, msgspec.structs.replace(said, **what))
        self.board.leave(who.peer, "storage", record, LIFETIME)

    def members(self) -> set[Peer]:
        return set(self.lookout.view.members(self.clock()))


def play(story: Callable[[Place], Awaitable[None]], last: int = 0) -> None:
    async def main() -> None:
        place = Place(last)
        tasks = [asyncio.ensure_future(place.lookout.run())]
        tasks.append(asyncio.ensure_future(place.presence.run()))
        await story(place)
        for task in tasks:
            assert not task.done(), task
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert len(asyncio.all_tasks()) == 1

    run(main())


@pytest.mark.parametrize(
    ("peers", "interval"),
    [
        (1, BOUNDS.look_every),
        (module._FEW, BOUNDS.look_every),
        (module._FEW * 5 // 4, BOUNDS.look_every * 1.25),
        (module._FEW * 4, BOUNDS.look_slowest),
    ],
)
def test_in_a_large_swarm_looks_are_less_frequent(peers: int, interval: float) -> None:
    times = list[float]()

    async def story(place: Place) -> None:
        for number in range(1, peers):  # this one is there, too
            place.leave(identity(1 + number))
        look = place.lookout._board.look

        async def counted(role: Role) -> list[list[bytes]]:
            times.append(place.clock())
            return await look(role)

        place.lookout._board.look = counted  # type: ignore[method-assign]
        await asyncio.sleep(25)

    play(story)
    pauses = [later - now for now, later in pairwise(times[1:])]
    assert pauses
    assert pauses == pytest.approx([interval] * len(pauses), abs=0.1)


def test_who_leaves_a_record_is_known_and_who_leaves_none_any_more_is_missed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)

    async def story(place: Place) -> None:
        await asyncio.sleep(10)
        assert place.members() == {ME.peer}
        place.leave(identity(2))
        await asyncio.sleep(BOUNDS.look_every + 1)
        assert place.members() == {ME.peer, identity(2).peer}
        assert repr(place.lookout) == "<Lookout: 1 live storage peers>"
        await asyncio.sleep(LIFETIME)
        assert place.members() == {ME.peer}

    play(story)
    name = name_of(identity(2).peer)
    assert [record.message for record in caplog.records] == [
        f"found 1 storage peers, 1 are live: {name}",
        f"lost 1 storage peers, 0 are live: {name}",
    ]


def test_a_peer_that_began_anew_is_told_of_once_and_never_oneself() -> None:
    async def story(place: Place) -> None:
        place.leave(identity(2))
        place.leave(ME, 5, incarnation=3)
        await asyncio.sleep(10)
        place.leave(identity(2), 2, incarnation=8)
        await asyncio.sleep(20)
        assert place.restarted == [identity(2).peer]

    play(story)


def test_by_a_wrong_clock_nothing_is_decided_until_somebody_is_seen_whom_it_fits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(place: Place) -> None:
        for number in (2, 3):
            said = announcement(identity(number), now=EPOCH + 7200)
            place.board.leave(identity(number).peer, "storage", signed(identity(number), said), 1e9)
        await asyncio.sleep(150)
        assert not place.lookout.whole.is_set()
        assert place.presence.posts == 0
        assert "s behind that of all 2 other peers: set it right" in place.lookout.clock_fault
        said_so = [one for one in caplog.records if one.levelname == "ERROR"]
        assert len(said_so) == 1
        place.leave(identity(4))
        await place.lookout.whole.wait()
        assert place.lookout.clock_fault == ""

    play(story)


def test_what_cannot_be_right_is_refused_counted_and_seldom_told_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(place: Place) -> None:
        forged = signed_as(identity(3), announcement(identity(2)))
        for record in (b"", b"rubbish", forged):
            place.board.leave(b"x" * 32, "storage", record, 1e9)
        place.leave(identity(4))
        await asyncio.sleep(100)
        assert place.lookout.refused > 50
        assert len(caplog.records) == 2
        assert "refused 1 records from the peer directory" in caplog.records[0].message

    play(story)


def test_bare_pulses_are_enough_where_a_record_is_known() -> None:
    async def story(place: Place) -> None:
        data = chained(identity(2), announcement(identity(2)))
        place.board.leave(identity(2).peer, "storage", data, LIFETIME)
        await place.lookout.look()
        for number in range(1, 20):
            await asyncio.sleep(10)
            short = bare(beat(data, identity(2), number))
            place.board.leave(identity(2).peer, "storage", short, LIFETIME)
            assert identity(2).peer in place.members()
        place.board.lose(ME.peer)
        await asyncio.sleep(60)
        shown = beat(data, identity(2), 26)
        for one in (bare(shown), shown):
            place.board.leave(identity(2).peer, "storage", one, LIFETIME)
        place.board.lose(ME.peer, lost=False)
        await asyncio.sleep(15)  # all at one stroke
        assert identity(2).peer in place.members()
        assert place.lookout.refused == 0

    play(story)


def test_all_records_are_asked_for_when_some_are_not_known_but_not_at_every_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(place: Place) -> None:
        forgets = list[float]()
        monkeypatch.setattr(place.board, "forget", lambda: forgets.append(place.clock()))
        await asyncio.sleep(100)
        assert forgets == []
        strange = bare(chained(identity(2), announcement(identity(2))))
        place.board.leave(identity(2).peer, "storage", strange, 1e9)
        await asyncio.sleep(200)
        pauses = [later - one for one, later in pairwise(forgets)]
        assert 11 <= len(forgets) <= 14
        assert min(pauses) >= module._WHOLE_EVERY
        forgets.clear()
        place.board.lose(ME.peer)
        await asyncio.sleep(10)
        assert forgets  # what other looks brought at that time may be lost

    play(story)


def test_the_board_is_told_what_is_missing_and_may_want_to_be_looked_at_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(place: Place) -> None:
        calls, soon = list[tuple[float, int, list[Peer], set[int]]](), [True, True, False, False]

        def missed(
            live: int, overdue: Callable[[Role, float], list[Peer]], strange: set[int]
        ) -> bool:
            now = place.clock()
            calls.append((now, live, overdue("storage", now - 10), {*strange}))
            return len(calls) <= len(soon) and soon[len(calls) - 1]

        monkeypatch.setattr(place.lookout._board, "missed", missed)
        known = chained(identity(2), announcement(identity(2)))
        place.board.leave(identity(2).peer, "storage", known, 1e9)
        unknown = bare(chained(identity(3), announcement(identity(3))))
        for short in apart(batch(7, [unknown])):
            place.board.leave(identity(3).peer, "storage", short, 1e9)
        await asyncio.sleep(40)
        times = [round(now - calls[0][0], 3) for now, *_ in calls]
        assert times[:5] == [0, 1, 2, 5, 8]
        assert [live for _, live, _, _ in calls][1:5] == [2] * 4  # it posts after the first look
        late = [overdue for _, _, overdue, _ in calls]
        assert late[:4] == [[]] * 4
        assert [identity(2).peer] in late  # and not its own, which it posts itself
        asked = [now for now, _, _, strange in calls if strange == {7}]
        assert len(asked) == 3
        assert min(later - one for one, later in pairwise(asked)) >= module._WHOLE_EVERY

    play(story)


def test_buckets_with_unknown_records_are_kept_until_they_may_be_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(place: Place) -> None:
        asked, directory = list[set[int]](), place.lookout.view.directory
        monkeypatch.setattr(
            place.lookout._board,
            "missed",
            lambda live, overdue, strange: asked.append({*strange}),
        )
        for bucket in (3, 4):
            directory.strange_buckets.add(bucket)
            await place.lookout.look()
        await asyncio.sleep(module._WHOLE_EVERY)
        await place.lookout.look()
        assert [some for some in asked if some] == [{3}, {4}]

    play(story)


def test_all_records_are_asked_for_when_a_look_comes_late_or_takes_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(place: Place) -> None:
        forgets = list[float]()
        monkeypatch.setattr(place.board, "forget", lambda: forgets.append(place.clock()))
        await asyncio.sleep(5)
        place.leave(identity(2))
        clock = place.lookout._clock
        seen = place.board.seen

        def slept(me: Peer, role: Role) -> list[list[bytes]]:
            monkeypatch.setattr(place.lookout, "_clock", lambda: clock() + 20)
            return seen(me, role)

        monkeypatch.setattr(place.board, "seen", slept)
        assert not await place.lookout.look()
        assert len(forgets) == 1
        assert await place.lookout.look()
        assert len(forgets) == 2
        assert identity(2).peer in place.members()

    play(story)


def test_while_the_clock_seems_wrong_all_records_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pulses alone have no date, so they would not show that it is."""

    async def story(place: Place) -> None:
        forgets = list[float]()
        monkeypatch.setattr(place.board, "forget", lambda: forgets.append(place.clock()))
        said = announcement(identity(2), now=EPOCH + 7200)
        place.board.leave(identity(2).peer, "storage", signed(identity(2), said), 1e9)
        assert not await place.lookout.look()
        assert len(forgets) == 1

    play(story)


def test_who_brings_what_a_clock_forbids_is_heard_on() -> None:
    """The clock here may be the wrong one."""

    async def story(place: Place) -> None:
        late = msgspec.structs.replace(announcement(identity(2)), issued=int(EPOCH) - 4000)
        for said in (signed(identity(2), late), signed(identity(3), announcement(identity(3)))):
            place.board.leave(b"x" * 32, "storage", said, 1e9)
        await place.lookout.look()
        assert identity(3).peer in place.members()
        assert place.lookout.refused > 0

    play(story)


def test_while_the_board_is_gone_no_record_ends_and_behind_that_those_of_the_dead_do() -> None:
    async def story(place: Place) -> None:
        for number in (2, 3):
            place.leave(identity(number))
        await asyncio.sleep(5)
        everybody = place.members()
        assert len(everybody) == 3
        version = place.around.version(place.lookout.time())
        place.board.lose(ME.peer)
        for _ in range(50):
            await asyncio.sleep(100)
            assert place.members() == everybody
        assert place.around.version(place.lookout.time()) == version
        assert place.lookout.time() < place.clock() - 4000
        assert place.lookout.view.ready(3, 0) == place.lookout.view.witnesses(3, 0)
        place.leave(identity(2), 2)
        place.board.lose(ME.peer, lost=False)
        await asyncio.sleep(15)
        assert place.members() == {ME.peer, identity(2).peer}
        assert place.lookout.time() == place.clock()

    play(story)


def test_it_is_blind_only_while_it_cannot_look_although_a_clock_goes_on_at_each_reading() -> None:
    async def story(place: Place) -> None:
        ticks = itertools.count()
        clock = Clock(lambda: EPOCH, lambda: place.clock() + 1e-6 * next(ticks))
        view, around = place.board.view(ME.peer), place.around
        lookout = Lookout(view, around, MANIFEST.swarm_id, clock)
        assert not lookout.is_blind
        await lookout.look()
        assert not lookout.is_blind
        place.board.lose(ME.peer)
        await asyncio.sleep(BOUNDS.grace + 1)
        assert lookout.is_blind

    play(story)


def test_a_board_that_comes_back_is_taken_in_at_one_stroke() -> None:
    async def story(place: Place) -> None:
        for number in range(2, 100):
            place.leave(identity(number))
        await asyncio.sleep(5)
        everybody = place.members()
        place.board.lose(ME.peer)
        await asyncio.sleep(100)
        for number in range(2, 100):
            place.leave(identity(number), 2)
        place.board.leave(b"x" * 32, "storage", b"rubbish", 1e9)
        place.board.lose(ME.peer, lost=False)
        seen = []
        look = asyncio.ensure_future(place.lookout.look())
        while not look.done():
            seen.append(place.members() | {ME.peer} == everybody)
            await asyncio.sleep(0)
        assert place.lookout.time() == place.clock()
        assert place.members() | {ME.peer} == everybody  # itself it knows without a record
        assert all(seen)
        assert len(seen) > 98 / 16
        assert place.lookout.refused == 1

    play(story)


def test_a_thousand_records_are_taken_in_small_helpings() -> None:
    async def story(place: Place) -> None:
        await asyncio.sleep(5)
        many = [Identity.from_seed(number.to_bytes(32, "little")) for number in range(1, 301)]
        for one in many:
            place.leave(one)
        turns = 0
        look = asyncio.ensure_future(place.lookout.look())
        while not look.done():
            await asyncio.sleep(0)
            turns += 1
        assert len(place.members()) == 301
        assert turns >= 300 / 16

    play(story)


def test_the_own_record_is_posted_at_each_change_but_not_more_than_once_a_second() -> None:
    async def story(place: Place) -> None:
        await asyncio.sleep(0.5)
        assert place.presence.posts == 1
        for _ in range(100):
            place.presence.changed()
            await asyncio.sleep(0.1)
        assert 9 <= place.presence.posts <= 11
        posts = place.presence.posts
        await asyncio.sleep(100)
        assert 9 <= place.presence.posts - posts <= 11  # every third of its life

    play(story)


def test_at_rest_a_record_is_signed_once_and_prolonged_by_pulses() -> None:
    async def story(place: Place) -> None:
        await asyncio.sleep(0.5)
        (first,) = place.around.directory.records(place.clock())
        shown = []
        for _ in range(MOST_PULSES):
            await asyncio.sleep(10)
            assert place.members() == {ME.peer}
            (data,) = place.around.directory.records(place.clock())
            assert data[PULSE_BYTES:] == first[PULSE_BYTES:]
            shown.append(split(data)[0].number)
        assert shown == list(range(1, MOST_PULSES + 1))
        await asyncio.sleep(10)  # the chain is used up
        (data,) = place.around.directory.records(place.clock())
        assert split(data)[0].number == 0
        assert place.members() == {ME.peer}
        place.ready = ALL[:1]
        place.presence.changed()
        await asyncio.sleep(1)
        (news,) = place.around.directory.records(place.clock())
        assert news[PULSE_BYTES:] != data[PULSE_BYTES:]
        said = place.around.directory.announcement(ME.peer)
        assert said is not None
        assert said.ready == packed(ALL[:1], LAYOUT.shards)
        assert place.lookout.refused == 0

    play(story)


def test_the_sequence_goes_on_where_the_last_life_ended() -> None:
    async def story(place: Place) -> None:
        ahead = int(EPOCH * 1000) + 3_000_000  # its clock was wrong then
        place.leave(ME, ahead, incarnation=3)
        await asyncio.sleep(5)
        said = place.around.directory.announcement(ME.peer)
        assert said is not None
        assert (said.sequence, said.incarnation) == (ahead + 1, 7)
        assert said.issued == int(EPOCH)

    play(story)


def test_the_sequence_goes_on_although_the_board_has_forgotten_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ahead = int(EPOCH * 1000) + 3_000_000

    async def story(place: Place) -> None:
        await asyncio.sleep(5)
        said = place.around.directory.announcement(ME.peer)
        assert said is not None
        assert said.sequence == ahead + 1

    play(story, ahead)
    assert caplog.text == ""


def test_another_one_with_the_same_identity_is_noticed(caplog: pytest.LogCaptureFixture) -> None:
    async def story(place: Place) -> None:
        await asyncio.sleep(5)
        theirs = int(EPOCH * 1000) + 60_000
        place.leave(ME, theirs, incarnation=3)
        await asyncio.sleep(30)
        said = place.around.directory.announcement(ME.peer)
        assert said is not None
        assert (said.sequence, said.incarnation) == (theirs + 1, 7)  # a pulse would not do
        assert "another process announces itself as this peer" in caplog.text
        assert len(caplog.records) == 1

    play(story)


def test_trouble_with_the_board_is_told_when_it_begins_and_when_it_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)

    async def story(place: Place) -> None:
        await asyncio.sleep(5)
        place.board.latency = (7.0, 7.0)
        await asyncio.sleep(60)
        place.board.latency = (0.0, 0.0)
        place.board.lose(ME.peer)
        await asyncio.sleep(60)
        place.board.lose(ME.peer, lost=False)
        await asyncio.sleep(60)

    play(story)
    told = sorted(record.message.split(", trying")[0] for record in caplog.records)
    assert told == [
        "the peer directory (to announce this peer) can be reached again",
        "the peer directory (to announce this peer) cannot be reached",
        "the peer directory can be reached again",
        "the peer directory cannot be reached",
    ]


def test_a_last_word_is_said_if_the_board_takes_it() -> None:
    async def story(place: Place) -> None:
        await asyncio.sleep(5)
        await place.presence.say("left")
        assert place.members() == set()
        place.board.lose(ME.peer)
        await place.presence.say("left")

    play(story)


def test_before_the_first_look_nothing_is_posted() -> None:
    async def story(place: Place) -> None:
        place.board.lose(ME.peer)
        await asyncio.sleep(100)
        assert place.board.posts == 0
        assert not place.lookout.whole.is_set()
        place.board.lose(ME.peer, lost=False)
        await asyncio.sleep(15)
        assert place.presence.posts >= 1

    play(story)


def test_a_clock_goes_by_the_wall_once_and_by_what_passed_since() -> None:
    wall, since = [100.0], [7.0]
    clock = Clock(lambda: wall[0], lambda: since[0])
    assert clock() == 100
    wall[0], since[0] = 50, 9
    assert clock() == 102
    before = passed()
    assert passed() >= before
    assert abs(Clock()() - time.time()) < 60


def test_a_clock_counts_the_time_while_the_machine_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    awake, asleep = 1000.0, [0.0]
    times = {time.CLOCK_BOOTTIME: lambda: awake + asleep[0]}
    monkeypatch.setattr(time, "clock_gettime", lambda number: times[number]())
    clock = Clock(lambda: 100.0)
    asleep[0] = 7200.0
    assert clock() == 7300


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"tick": 0}, "tick must be more than 0"),
        ({"grace": 20}, "grace plus a third"),
        ({"look_slowest": 5.0}, "must be less than grace, 10.0 s; they are 5.0 and 5.0 s"),
        ({"retry": math.nan}, "retry must be more than 0, and finite; it is nan"),
        ({"look_within": math.inf}, "look_within must be more than 0, and finite; it is inf"),
    ],
)
def test_options_that_cannot_be_are_refused(wrong: dict[str, float], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Options(**wrong)
