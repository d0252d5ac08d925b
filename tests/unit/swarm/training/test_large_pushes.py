"""Large pushes share the line that they leave over, and have the time that it needs."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from giaann_p2p.store.layout import Shards
from giaann_p2p.swarm.training import writer
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Carried, Carry, Push, Pushed, PushFrom, Refusal
from tests.helpers_swarm import JOB, NOW, SHARDS, A, B, C, D, sealed
from tests.unit.swarm.training.helpers_writer import ALL, EVERY, Writing, asked

MEGABIT = 1e6 / 8


def large(one: Writing, size: int, chunk: int = 3, now: float = NOW) -> None:
    """Begin to push a chunk with so many bytes of rows."""

    def cut(numbers: Shards) -> bytes:
        return bytes(size * len(numbers) // SHARDS)

    one.do(one.writer.push(JOB, chunk, cut, sealed(JOB, chunk), now))


STEP = 0.05


@pytest.fixture(autouse=True)
def _any_parcel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let zeros be parcels, whose size in memory is their length."""
    monkeypatch.setattr(writer, "carried_size", lambda parcel, seal: len(parcel))


@dataclass
class Line:
    """The line that all pushes from here share, and who does not answer as the others do."""

    rate: float
    near: Sequence[bytes] = ()
    """Peers that have another line, and take a push at once."""
    refusing: Sequence[bytes] = ()
    """Peers that refuse a push at once, and do not answer when told to fetch rows."""
    silent: Sequence[bytes] = ()
    """Peers that never answer."""
    hoarding: Sequence[bytes] = ()
    """Peers that take a push, but serve nobody."""
    begun: dict[int, float] = field(default_factory=dict)
    sent: dict[int, float] = field(default_factory=dict)

    def bring(self, one: Writing, chunks: int, most: float = 300.0) -> float:
        """Answer all that is asked; return when so many chunks were committed.

        Whatever is not there in time was sent in vain. To fetch rows from a seed takes a second.
        """
        now, steps, done = NOW, 0, NOW
        while one.calls or len(one.committed) < chunks:
            now, steps = now + STEP, steps + 1
            assert now < NOW + most
            sharing = [call for call in one.calls if self.is_over_it(call)]
            for call in sharing:
                share = STEP * self.rate / len(sharing)
                self.sent[call.number] = self.sent.get(call.number, 0.0) + share
            for call in list(one.calls):
                passed = now - self.begun.setdefault(call.number, now)
                answer = self.answer(call, passed)
                if answer is not None or passed >= call.timeout:
                    one.calls.remove(call)
                    one.do(one.writer.answered(call.number, answer, now))
            if steps % round(1 / STEP) == 0:
                one.tick(now)
            done = now if len(one.committed) < chunks else done
        return done - NOW

    def is_over_it(self, call: Call) -> bool:
        return isinstance(call.message, Push | Carry) and call.peer not in self.near

    def answer(self, call: Call, passed: float) -> Message | None:
        message = call.message
        assert isinstance(message, Push | PushFrom | Carry)
        if call.peer in self.silent:
            return None
        if isinstance(message, PushFrom):
            serves = message.source not in self.hoarding and call.peer not in self.refusing
            return Pushed(message.shards) if serves and passed >= 1.0 else None
        if call.peer in self.refusing:
            return Refusal("no") if passed >= STEP else None
        is_there = call.peer in self.near or self.sent[call.number] >= len(message.parcel)
        taken = Carried() if isinstance(message, Carry) else Pushed(message.shards)
        return taken if is_there else None


@pytest.mark.parametrize("chunks", [1, 6])
def test_large_chunks_get_over_a_thin_line_once(chunks: int) -> None:
    one, size = Writing(A, B, C), 870_000
    for chunk in range(chunks):
        large(one, size, chunk)
    seconds = Line(MEGABIT).bring(one, chunks)
    assert len(one.committed) == chunks
    assert sum(one.sent) <= 1.01 * chunks * size
    assert seconds <= 9.0 * chunks


@pytest.mark.parametrize(("rate", "times"), [(0.3 * MEGABIT, 2.1), (0.5 * MEGABIT, 1.1)])
def test_they_get_over_a_thinner_one_too_if_not_at_once(rate: float, times: float) -> None:
    one, size = Writing(A, B, C), 870_000
    large(one, size)
    Line(rate).bring(one, 1)
    assert len(one.committed) == 1
    assert one.sent[0] <= times * size
    assert one.around.suspected == ([A] if times > 2 else [])


def finish(one: Writing, now: float) -> None:
    """Let all calls succeed."""
    while one.calls:
        does = isinstance(one.calls[0].message, Carry)
        one.answer(one.calls[0].peer, Carried() if does else Pushed(ALL), now)


def test_the_holders_wait_for_the_courier_of_a_large_chunk() -> None:
    one = Writing(A, B, C)
    large(one, 1 << 20)
    (call,) = one.calls
    assert (call.peer, round(call.timeout)) == (A, 21)
    assert one.tick(NOW + 17.0) == []
    assert one.tick(NOW + 17.8) == []  # its time is over, but the line is still taken
    one.answer(A, None, NOW + 21.0)
    assert asked(one) == {B: (None, EVERY)}
    one.answer(B, Carried(), NOW + 30.0)
    assert asked(one)[C] == (B, EVERY)
    assert [round(call.timeout) for call in one.calls if call.peer == C] == [36]


def test_a_courier_that_cannot_be_reached_says_nothing_about_the_line() -> None:
    one = Writing(A, B, C)
    large(one, 1 << 20)
    one.answer(A, None, NOW + 0.1)
    assert [(call.peer, round(call.timeout)) for call in one.calls] == [(B, 21)]


def test_on_a_fast_line_a_dead_courier_of_a_large_chunk_is_noticed_soon() -> None:
    one = Writing(A, B, C)
    large(one, 1 << 20)
    one.answer(A, Carried(), NOW + 0.1)
    finish(one, NOW + 0.2)
    large(one, 1 << 20, chunk=6, now=NOW + 1)
    (call,) = one.calls
    assert (call.peer, round(call.timeout, 1)) == (A, 5.0)
    assert one.tick(NOW + 3.0) == []
    assert one.tick(NOW + 3.1) == [B]
    one.answer(B, Carried(), NOW + 3.2)
    assert [call.message.source for call in one.calls if isinstance(call.message, PushFrom)] == [
        *[B] * 3
    ]


def slow_fast_and_unknown() -> Writing:
    """Return a writer that knows A's line to be slow, and B's to be fast, but not C's."""
    one = Writing(A, B, C)
    for chunk, courier, seconds in ((3, A, 8.0), (4, B, 0.1)):
        large(one, 1 << 20, chunk)
        one.answer(courier, Carried(), NOW + seconds)
        finish(one, NOW + seconds)
    return one


def test_who_has_a_slow_line_carries_nothing_while_others_may() -> None:
    one = slow_fast_and_unknown()
    for chunk, courier in ((6, B), (7, B), (8, C)):  # the first would be A's turn
        large(one, 1 << 20, chunk, now=NOW + 10)
        assert [call.peer for call in one.calls] == [courier]
        finish(one, NOW + 10.1)
    one.around.unreachable = {B, C}
    large(one, 1 << 20, chunk=9, now=NOW + 11)
    assert [(call.peer, round(call.timeout)) for call in one.calls] == [(A, 36)]


def test_who_has_a_fast_line_has_less_time_to_fetch_rows() -> None:
    one = slow_fast_and_unknown()
    large(one, 1 << 20, chunk=8, now=NOW + 10)
    one.answer(C, Carried(), NOW + 18)
    told = {call.peer: round(call.timeout, 1) for call in one.calls}
    assert told[B] < 5.0
    assert told[A] > 10.0


def test_only_large_pushes_wait_for_each_other() -> None:
    one = Writing(A, B, C)
    large(one, 1 << 20, chunk=3)
    large(one, 1 << 20, chunk=6)
    assert asked(one) == {A: (None, EVERY)}
    one.answer(A, Carried(), NOW + 8.0)
    carries = [call.peer for call in one.calls if isinstance(call.message, Carry)]
    assert carries == [B]  # of the other chunk: A is slow now
    one.push(chunk=1, now=NOW + 8.2)
    large(one, 1 << 20, chunk=9, now=NOW + 8.3)
    while one.calls:
        finish(one, NOW + 16.0)
        one.tick(NOW + 16.0)
    assert {done.chunk for done in one.committed} == {1, 3, 6, 9}


def test_a_chunk_that_waits_for_another_ones_push_goes_on_when_that_ends() -> None:
    one = Writing(A, B, C)
    for chunk in (3, 7):
        large(one, 1 << 20, chunk)
    assert asked(one) == {A: (None, EVERY)}
    one.answer(A, Refusal("full"), NOW + 0.3)
    first, *others = one.calls
    assert (first.peer, others) == (B, [])  # of the same chunk; the other one waits for it
    one.answer(B, Carried(), NOW + 8.0)
    carries = [call for call in one.calls if isinstance(call.message, Carry)]
    assert [call.message.chunk for call in carries if isinstance(call.message, Carry)] == [7]


def test_the_end_of_a_small_push_wakes_no_other_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Writing(A, B, C, few=0)
    for chunk in (3, 7):  # their couriers are A and B
        one.push(chunk)
    woken = []
    monkeypatch.setattr(one.writer, "_waiting", lambda now: woken.append(now) or [])
    one.answer(A, Carried(), NOW + 0.5)
    assert woken == []


@pytest.mark.parametrize("refuser", [A, B, C])
def test_a_refusal_at_once_leaves_the_others_their_time(refuser: bytes) -> None:
    one, size = Writing(A, B, C, D), 870_000
    for chunk in range(3):
        large(one, size, chunk)
    seconds = Line(MEGABIT, refusing=[refuser]).bring(one, 3)
    assert seconds < 28.0
    assert max(one.sent) <= 2.5 * size  # with what the refuser did not take
    assert one.around.suspected == []


@pytest.mark.parametrize("near", [1, 2])
@pytest.mark.parametrize("peers", [4, 8])
def test_a_peer_nearby_leaves_the_others_their_time(peers: int, near: int) -> None:
    everyone = [Peer(bytes([65 + number]) * 32) for number in range(peers)]
    one, size = Writing(*everyone), 1_700_000
    for chunk in range(4):
        large(one, size, chunk)
    seconds = Line(MEGABIT, near=everyone[:near]).bring(one, 4)
    assert seconds < 43.0
    assert max(one.sent) <= 1.3 * size
    assert one.around.suspected == []


@pytest.mark.parametrize("line", [Line(80 * MEGABIT, silent=[A]), Line(80 * MEGABIT, hoarding=[A])])
def test_a_peer_that_does_nothing_stalls_a_chunk_for_some_20_seconds(line: Line) -> None:
    one = Writing(A, B, C)
    large(one, 7_000_000)
    assert [(call.peer, round(call.timeout)) for call in one.calls] == [(A, 116)]
    assert line.bring(one, 1) < 25.0
    assert one.sent[0] <= 2.1 * 7_000_000
