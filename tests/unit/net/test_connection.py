"""A connection's two sides: what one asks the other hears and answers, or is told why not."""

import random

import pytest
from xxhash import xxh3_64_intdigest

from giaann_p2p.errors import UsageError
from giaann_p2p.net.connection import Connection
from giaann_p2p.net.errors import Broken, Reason, Refused, TimedOut, Unreachable
from giaann_p2p.net.events import Cancelled, Failed, Requested, Responded
from giaann_p2p.net.frames import CHUNK, ENDING, NUMBER, Buffer, Kind
from giaann_p2p.net.limits import FREE, Limits
from giaann_p2p.net.states import Phase
from tests.unit.net.helpers import QUICK, Pair, Rogue, assert_nothing_is_held, joined

SIZES = [0, 1, 100, CHUNK - 1, CHUNK, CHUNK + 1, FREE, FREE + 1, 3 << 20, QUICK.longest]


@pytest.fixture(params=[0, 1], ids=["dialler", "dialled"])
def asker(request: pytest.FixtureRequest) -> int:
    """The side that asks: all must hold both ways."""
    side: int = request.param
    return side


def failure(events: list[object]) -> tuple[type, str]:
    (failed,) = events
    assert isinstance(failed, Failed)
    return type(failed.error), str(failed.error)


@pytest.mark.parametrize("size", SIZES)
def test_a_request_of_any_length_is_answered_at_any_length(size: int, asker: int) -> None:
    pair = Pair()
    asked, answer = random.Random(size).randbytes(size), random.Random(-size).randbytes(size)
    number = pair.sides[asker].request(asked, pair.now + 10)
    assert pair.settle()[1 - asker] == [Requested(number, asked)]
    pair.sides[1 - asker].respond(number, answer)
    assert pair.settle()[asker] == [Responded(number, answer)]
    for side in pair.sides:
        assert_nothing_is_held(side)


def test_both_sides_ask_at_once_and_answer_in_any_order() -> None:
    pair = Pair()
    numbers = [[side.request(b"%d" % n, 1e9) for n in range(5)] for side in pair.sides]
    assert numbers == [[1, 3, 5, 7, 9], [2, 4, 6, 8, 10]]
    heard = pair.settle()
    for side, events in enumerate(heard):
        for event in reversed(events):
            assert isinstance(event, Requested)
            pair.sides[side].respond(event.request, event.body * 2)
    for side, events in enumerate(pair.settle()):
        answers = [Responded(number, b"%d" % n * 2) for n, number in enumerate(numbers[side])]
        assert events == answers[::-1]


def test_a_small_answer_overtakes_a_long_one(asker: int) -> None:
    pair = Pair()
    caller, server = pair.sides[asker], pair.sides[1 - asker]
    long, small = caller.request(b"long", 1e9), caller.request(b"small", 1e9)
    pair.settle()
    server.respond(long, bytes(QUICK.longest))
    server.respond(small, b"here")
    first = pair.move(1 - asker, 1)
    assert first == []
    assert pair.move(1 - asker, 1) == [Responded(small, b"here")]
    assert [type(event) for event in pair.settle()[asker]] == [Responded]


def test_long_bodies_take_turns(asker: int) -> None:
    pair = Pair()
    caller, server = pair.sides[asker], pair.sides[1 - asker]
    one, two = caller.request(b"1", 1e9), caller.request(b"2", 1e9)
    pair.settle()
    server.respond(one, bytes(2 << 20))
    server.respond(two, bytes(2 << 20))
    for _ in range(4):
        for _ in range(2):
            pair.move(1 - asker, 1)
        halves = [caller._open[number].incoming for number in (one, two)]
        assert len({repr(half) for half in halves}) == 1


def test_a_body_without_credit_steps_aside(asker: int) -> None:
    pair = Pair()
    caller, server = pair.sides[asker], pair.sides[1 - asker]
    caller.request(bytes(QUICK.longest), 1e9)
    sent = b""
    while data := joined(caller.to_send()):
        sent += data
    assert FREE < len(sent) < FREE + 1000
    small = caller.request(b"small", 1e9)
    sent += joined(caller.to_send())
    assert server.feed(sent, pair.now) == [Requested(small, b"small")]


def test_a_deadline_ends_a_call_and_tells_the_server(asker: int) -> None:
    pair = Pair()
    caller, server = pair.sides[asker], pair.sides[1 - asker]
    number = caller.request(b"?", pair.now + 2)
    pair.settle()
    assert caller.wake() == pair.now + 2
    assert pair.later(1.9)[asker] == []
    (failed,) = pair.later(0.2)[asker]
    assert failure([failed]) == (TimedOut, "the peer has not answered in time")
    assert pair.settle()[1 - asker] == [Cancelled(number)]
    server.respond(number, b"too late")
    assert pair.settle() == ([], [])
    for side in pair.sides:
        assert_nothing_is_held(side)


@pytest.mark.parametrize("when", range(12))
def test_a_call_is_cancelled_at_any_moment(when: int, asker: int) -> None:
    pair = Pair()
    caller, server = pair.sides[asker], pair.sides[1 - asker]
    number = caller.request(bytes(2 << 20), 1e9)
    other = caller.request(b"other", 1e9)
    for step in range(40):
        if step == when:
            caller.cancel(number)
            caller.cancel(number)
        heard = pair.move(asker, 1)
        for event in heard:
            if isinstance(event, Requested):
                server.respond(event.request, bytes(2 << 20) if event.request == number else b"!")
        for event in pair.move(1 - asker, 1):
            assert event == Responded(other, b"!")
    pair.settle()
    for side in pair.sides:
        assert_nothing_is_held(side)
        assert side.phase is Phase.OPEN


def test_what_was_never_sent_is_cancelled_without_a_word(asker: int) -> None:
    pair = Pair()
    pair.settle()
    number = pair.sides[asker].request(b"never mind", 1e9)
    pair.sides[asker].cancel(number)
    assert not pair.talking
    assert pair.sides[asker].to_send() == []


def test_a_server_refuses_with_a_reason(asker: int) -> None:
    pair = Pair()
    number = pair.sides[asker].request(b"?", 1e9)
    pair.settle()
    pair.sides[1 - asker].refuse(number, Refused(Reason.LEAVING, "I am \x1b[31mleaving é"))
    (failed,) = pair.settle()[asker]
    assert failure([failed]) == (Refused, "I am ?[31mleaving é")
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, Refused)
    assert failed.error.reason is Reason.LEAVING
    for side in pair.sides:
        assert_nothing_is_held(side)


def test_an_error_that_is_long_is_cut_between_letters() -> None:
    data = Refused(Reason.FAILED, "é" * 2000).to_bytes()
    assert len(data) == 1023
    assert str(Refused.from_bytes(data)) == "é" * 511


def test_a_caller_is_refused_at_home_when_too_much_is_under_way() -> None:
    pair = Pair()
    caller = pair.sides[0]
    with pytest.raises(
        Refused, match="a request of 4,194,305 bytes exceeds the limit of 4,194,304"
    ):
        caller.request(bytes(QUICK.longest + 1), 1e9)
    caller.request(bytes(QUICK.longest), 1e9)
    two = caller.request(bytes(QUICK.longest), 1e9)
    with pytest.raises(Refused, match="no room for a request of 1 bytes") as caught:
        caller.request(b"1", 1e9)
    assert caught.value.reason is Reason.BUSY
    caller.cancel(two)
    for _ in range(QUICK.calls - 1):
        caller.request(b"1", 1e9)
    with pytest.raises(Refused, match="8 calls to the peer are open already"):
        caller.request(b"", 1e9)


def test_a_server_refuses_more_calls_than_it_takes() -> None:
    pair = Pair()
    pair.sides[1]._books.serving = Limits(calls=2)
    numbers = [pair.sides[0].request(b"", 1e9) for _ in range(3)]
    asked, failed = pair.settle()[::-1]
    assert asked == [Requested(numbers[0], b""), Requested(numbers[1], b"")]
    words = "2 requests of the caller are open already; try again later"
    assert failure(list(failed)) == (Refused, words)


@pytest.mark.parametrize("size", [CHUNK, QUICK.longest])
def test_a_server_refuses_more_bytes_than_it_has_room_for(size: int) -> None:
    pair = Pair()
    caller, server = pair.sides
    server._room_in.limit = 2 * size
    for _ in range(2):
        caller.request(bytes(size), 1e9)
        assert len(pair.settle()[1]) == 1
    caller.request(bytes(size), 1e9)
    words = f"no room for a request of {size:,} bytes now; try again later"
    assert failure(list(pair.settle()[0])) == (Refused, words)
    server.respond(1, b"")
    pair.settle()
    caller.request(bytes(size), 1e9)
    assert len(pair.settle()[1]) == 1


def test_what_is_only_announced_takes_no_room_from_others() -> None:
    rogue = Rogue()
    for request in (1, 3, 5):
        rogue.send(Kind.LONG, request, NUMBER.pack(QUICK.longest))
    assert rogue.honest._room_in.used == 0
    rogue.send(Kind.CHUNK, 1, bytes(CHUNK))
    assert rogue.honest._room_in.used == CHUNK
    assert rogue.send(Kind.REQUEST, 7, b"?") == [Requested(7, b"?")]
    assert rogue.honest._room_in.used == CHUNK + 1


def test_a_long_body_is_given_up_when_there_is_no_room_for_the_rest_of_it() -> None:
    pair = Pair()
    caller, server = pair.sides
    asked = caller.request(bytes(3 * CHUNK), 1e9)
    pair.move(0, 1)
    server._room_in.limit = CHUNK
    pair.move(0, 1)
    words = f"no room for a request of {3 * CHUNK:,} bytes now; try again later"
    assert failure(list(pair.settle()[0])) == (Refused, words)
    server._room_in.limit = QUICK.bytes_in
    caller.request(b"", 1e9)
    pair.settle()
    server.respond(asked + 2, bytes(3 * CHUNK))
    pair.move(1, 1)
    caller._room_in.limit = CHUNK
    words = f"no room for a response of {3 * CHUNK:,} bytes now; try again later"
    assert failure(list(pair.settle()[0])) == (Refused, words)
    for side in pair.sides:
        assert_nothing_is_held(side)


def test_a_response_for_which_there_is_no_room_is_refused_on_either_side() -> None:
    pair = Pair()
    caller, server = pair.sides
    for _ in range(3):
        caller.request(b"", 1e9)
    pair.settle()
    server.respond(1, bytes(QUICK.longest + 1))
    caller._room_in.limit = 1 << 20
    server.respond(3, bytes(2 << 20))
    heard, told = pair.settle()
    assert [str(event.error) for event in heard if isinstance(event, Failed)] == [
        "the response of 4,194,305 bytes exceeds the limit of 4,194,304; ask for less at a time",
        "no room for a response of 2,097,152 bytes now; try again later",
    ]
    assert told == [Cancelled(3)]
    server._room_out.limit = 10
    server.respond(5, bytes(11))
    assert failure(list(pair.settle()[0]))[0] is Refused
    for side in pair.sides:
        assert_nothing_is_held(side)


def test_quiet_sides_ping_and_a_silent_one_counts_as_gone() -> None:
    pair = Pair()
    for _ in range(20):
        assert pair.later(QUICK.ping_after) == ([], [])
        assert pair.talking
        assert pair.settle() == ([], [])
    assert pair.sides[0].round_trip == 0
    numbers = [side.request(b"?", 1e9) for side in pair.sides]
    pair.settle()
    pair.now += QUICK.silent_after
    assert pair.sides[0].wake() < pair.now
    for side, other in ((0, 1), (1, 0)):
        failed, cancelled = pair.sides[side].tick(pair.now)
        message = "the peer has been silent for 15.0 s, and counts as gone"
        assert failure([failed]) == (Broken, message)
        assert cancelled == Cancelled(numbers[other])
        assert pair.sides[side].over
        assert str(pair.sides[side].error) == message
        assert pair.sides[side].wake() == float("inf")
        assert_nothing_is_held(pair.sides[side])


def test_who_sends_anyway_does_not_ping() -> None:
    pair = Pair()
    pair.settle()
    for _ in range(5):
        pair.sides[0].request(b"", 1e9)
        pair.later(QUICK.ping_after - 1)
        pair.settle()
        assert pair.sides[0]._pings == 0


def test_an_answer_to_a_long_request_may_take_long() -> None:
    pair = Pair()
    number = pair.sides[0].request(bytes(1 << 20), 1e9)
    assert [type(event) for event in pair.settle()[1]] == [Requested]
    for _ in range(30):
        assert pair.later(5) == ([], [])
        pair.settle()
    pair.sides[1].respond(number, b"at last")
    assert pair.settle()[0] == [Responded(number, b"at last")]


def test_who_answers_no_goodbye_has_to_go() -> None:
    """Else it keeps its place for as long as it likes, with a ping now and then."""
    rogue = Rogue()
    rogue.honest.goodbye()
    assert rogue.hear() == [(Kind.GOODBYE, 0, b"")]
    until = rogue.now + QUICK.silent_after
    while rogue.now + QUICK.ping_after < until:
        rogue.now += QUICK.ping_after
        rogue.send(Kind.PING, 0, NUMBER.pack(1))
        assert rogue.honest.tick(rogue.now) == []
        assert not rogue.honest.over
        assert rogue.honest.wake() <= until
    rogue.hear()
    rogue.honest.tick(until)
    assert rogue.honest.over
    ((kind, _, words),) = rogue.hear()
    assert (kind, words[1:]) == (Kind.ERROR, b"no reply to the goodbye arrived in time")


def test_what_is_open_when_a_goodbye_is_said_has_its_time() -> None:
    rogue = Rogue()
    rogue.send(Kind.REQUEST, 1, b"?")
    rogue.honest.goodbye()
    for _ in range(10):
        rogue.now += QUICK.ping_after
        rogue.send(Kind.PING, 0, NUMBER.pack(1))
        rogue.honest.tick(rogue.now)
    assert not rogue.honest.over
    rogue.honest.respond(1, b"!")
    rogue.send(Kind.GOODBYE, 0, b"")
    assert (Kind.RESPONSE, 1, b"!") in rogue.hear()
    assert rogue.honest.error is None


def test_a_goodbye_lets_all_that_is_open_end() -> None:
    pair = Pair()
    caller, server = pair.sides
    one, two = caller.request(b"1", 1e9), server.request(bytes(1 << 21), 1e9)
    caller.goodbye()
    caller.goodbye()
    with pytest.raises(Unreachable, match="closing; nothing was sent"):
        caller.request(b"2", 1e9)
    heard = pair.settle()
    assert heard == ([Requested(two, bytes(1 << 21))], [Requested(one, b"1")])
    with pytest.raises(Unreachable, match="closing; nothing was sent"):
        server.request(b"2", 1e9)
    assert not caller.over
    caller.respond(two, b"yes")
    server.respond(one, b"yes")
    assert pair.settle() == ([Responded(one, b"yes")], [Responded(two, b"yes")])
    for side in pair.sides:
        assert side.over
        assert side.error is None
        assert side.eof(pair.now) == []


@pytest.mark.parametrize("stop", range(0, 40, 3))
def test_a_stream_that_ends_is_never_a_success(stop: int, asker: int) -> None:
    pair = Pair()
    caller, server = pair.sides[asker], pair.sides[1 - asker]
    number = caller.request(bytes(1 << 20), 1e9)
    events: list[object] = []
    for step in range(stop):
        if step % 2 == 0:
            if pair.move(asker, 1):
                server.respond(number, bytes(1 << 20))
        else:
            events += pair.move(1 - asker, 1)
    answered = bool(events)
    events += caller.eof(pair.now)
    server.eof(pair.now)
    if not answered:
        error, words = failure(events)
        assert error is (Broken if stop else Unreachable)
        assert words.endswith("the stream ended before the peer said goodbye")
    for side in pair.sides:
        assert_nothing_is_held(side)


def test_the_end_of_all_is_told_with_its_reason() -> None:
    pair = Pair()
    pair.sides[0].request(b"", 1e9)
    pair.settle()
    assert pair.sides[1].refuse_all(Refused(Reason.BUSY, "64 peers are connected already")) == [
        Cancelled(1)
    ]
    (failed,) = pair.settle()[0]
    assert failure([failed]) == (Refused, "64 peers are connected already")
    assert isinstance(pair.sides[0].error, Refused)


def test_a_loss_is_told_with_what_was_lost() -> None:
    pair = Pair()
    pair.sides[0].request(b"", 1e9)
    pair.settle()
    pair.sides[0].request(b"", 1e9)
    sent, unsent = pair.sides[0].lost("reset by peer", pair.now)
    assert failure([sent]) == (Broken, "the connection to the peer was lost: reset by peer")
    assert failure([unsent])[0] is Unreachable
    assert pair.sides[0].feed(b"whatever", pair.now) == []
    assert pair.sides[0].tick(pair.now + 100) == []
    assert pair.sides[0].lost("again", pair.now) == []


def test_what_stalls_is_dropped() -> None:
    rogue = Rogue()
    rogue.send(Kind.LONG, 1, NUMBER.pack(1 << 20))
    rogue.send(Kind.REQUEST, 3, b"")
    rogue.honest.respond(3, bytes(2 << 20))
    rogue.hear()
    events: list[object] = []
    for _ in range(13):
        rogue.now += 5
        rogue.send(Kind.PING, 0, bytes(8))
        events += rogue.honest.tick(rogue.now)
    assert events == [Cancelled(3)]
    told = {request: data for kind, request, data in rogue.hear() if kind is Kind.ERROR}
    assert sorted(told) == [1, 3]
    assert Refused.from_bytes(told[1]).reason is Reason.STALLED
    assert_nothing_is_held(rogue.honest)


def passing(rogue: Rogue, seconds: float) -> list[object]:
    """Let time pass for an honest side that hears pings meanwhile; return its events."""
    events: list[object] = []
    until = rogue.now + seconds
    while rogue.now < until:
        rogue.now = min(until, rogue.now + 5)
        rogue.send(Kind.PING, 0, bytes(8))
        events += rogue.honest.tick(rogue.now)
    return events


@pytest.mark.parametrize("parked", [True, False])
def test_a_little_credit_now_and_then_does_not_hold_a_response(parked: bool) -> None:
    """Neither while the body waits for credit, nor while it waits for the line to take it."""
    rogue = Rogue()
    rogue.send(Kind.REQUEST, 1, b"")
    rogue.honest.respond(1, bytes(2 << 20))
    if parked:
        rogue.hear()
    events: list[object] = []
    for _ in range(2):
        events += passing(rogue, 50)
        rogue.send(Kind.CREDIT, 1, NUMBER.pack(1))
    assert events == [Cancelled(1)]
    rogue.hear()
    assert_nothing_is_held(rogue.honest)


def test_credit_for_a_whole_chunk_lets_a_response_go_on() -> None:
    rogue = Rogue()
    rogue.send(Kind.REQUEST, 1, b"")
    rogue.honest.respond(1, bytes(FREE + 2 * CHUNK))
    rogue.hear()
    for _ in range(2):
        assert passing(rogue, 50) == []
        rogue.send(Kind.CREDIT, 1, NUMBER.pack(CHUNK))
    assert Kind.END in [kind for kind, _, _ in rogue.hear()]
    assert_nothing_is_held(rogue.honest)


@pytest.mark.parametrize(("seconds", "passes"), [(20, True), (55, False)])
def test_a_body_may_be_as_slow_as_a_thin_line_and_no_slower(seconds: float, passes: bool) -> None:
    size, number = 4 << 20, 1
    rogue = Rogue()
    rogue.send(Kind.LONG, number, NUMBER.pack(size))
    events, heard = list[object](), rogue.hear()
    for _ in range(size // CHUNK):
        events += passing(rogue, seconds)
        rogue.send(Kind.CHUNK, number, bytes(CHUNK))
        heard += rogue.hear()
    ending = ENDING.pack(size, xxh3_64_intdigest(bytes(size)))
    events += rogue.send(Kind.END, number, ending)
    told = [Refused.from_bytes(data) for kind, _, data in heard if kind is Kind.ERROR]
    if passes:
        assert (events, told) == ([Requested(number, bytes(size))], [])
        return
    assert events == []
    assert [(why.reason, str(why)) for why in told] == [
        (Reason.STALLED, "the transfer was slower than 8,192 bytes a second")
    ]
    assert_nothing_is_held(rogue.honest)


@pytest.mark.parametrize(("seconds", "passes"), [(20, True), (55, False)])
def test_a_response_may_be_read_as_slowly(seconds: float, passes: bool) -> None:
    rogue = Rogue()
    rogue.send(Kind.REQUEST, 1, b"")
    rogue.honest.respond(1, bytes(4 << 20))
    events, heard = [], rogue.hear()
    for _ in range(((4 << 20) - FREE) // CHUNK):
        events += passing(rogue, seconds)
        rogue.send(Kind.CREDIT, 1, NUMBER.pack(CHUNK))
        heard += rogue.hear()
    assert events == ([] if passes else [Cancelled(1)])
    assert (Kind.END in [kind for kind, _, _ in heard]) == passes
    assert_nothing_is_held(rogue.honest)


LONG = NUMBER.pack(1 << 20)
OUTLAWS: dict[str, list[tuple[Kind, int, Buffer]]] = {
    "request 3 is out of order after request 5": [(Kind.REQUEST, 5, b""), (Kind.REQUEST, 3, b"")],
    "request 1 is out of order after request 1": [(Kind.REQUEST, 1, b""), (Kind.LONG, 1, LONG)],
    "request 2 is out of order after request 0": [(Kind.REQUEST, 2, b"")],
    "request 0 is out of order after request 0": [(Kind.REQUEST, 0, b"")],
    "chunk frame for request 1, which has not begun": [(Kind.CHUNK, 1, b"x")],
    "response frame for request 2, which has not begun": [(Kind.RESPONSE, 2, b"x")],
    "long frame for request 4, which has not begun": [(Kind.LONG, 4, LONG)],
    "end frame for request 0, which has not begun": [(Kind.END, 0, bytes(16))],
    "chunk is not allowed for a request that is served": [
        (Kind.REQUEST, 1, b""),
        (Kind.CHUNK, 1, b"x"),
    ],
    "credit is not allowed for a request that is served": [
        (Kind.REQUEST, 1, b""),
        (Kind.CREDIT, 1, LONG),
    ],
    "error is not allowed for a request that is served": [
        (Kind.REQUEST, 1, b""),
        (Kind.ERROR, 1, b"\1"),
    ],
    "a body of 262,144 bytes was sent as a long one": [(Kind.LONG, 1, NUMBER.pack(CHUNK))],
    "a chunk of 1 bytes is wrong at offset 0 of a body of 1,048,576": [
        (Kind.LONG, 1, LONG),
        (Kind.CHUNK, 1, b"x"),
    ],
    "the end frame says 0 bytes, but 0 of 1,048,576 bytes arrived": [
        (Kind.LONG, 1, LONG),
        (Kind.END, 1, bytes(16)),
    ],
    "the end frame says 1,048,576 bytes, but 0 of 1,048,576 bytes arrived": [
        (Kind.LONG, 1, LONG),
        (Kind.END, 1, ENDING.pack(1 << 20, xxh3_64_intdigest(b""))),
    ],
    "the checksum of a body does not match": [
        (Kind.LONG, 1, LONG),
        *[(Kind.CHUNK, 1, bytes(CHUNK))] * 4,
        (Kind.END, 1, ENDING.pack(1 << 20, 5)),
    ],
    "an error frame has the unknown reason code 0": [(Kind.ERROR, 0, b"\0")],
    "a pong came for ping 1, but only 0 pings were sent": [(Kind.PONG, 0, NUMBER.pack(1))],
    "goodbye is not allowed on a connection that is draining": [(Kind.GOODBYE, 0, b"")] * 2,
    "request is not allowed on a connection that is draining": [
        (Kind.REQUEST, 1, b""),
        (Kind.GOODBYE, 0, b""),
        (Kind.REQUEST, 3, b""),
    ],
    "more than 96 control frames wait unread": [(Kind.PING, 0, bytes(8))] * 97,
}


@pytest.mark.parametrize("message", OUTLAWS)
def test_who_breaks_the_rules_is_told_and_left(message: str) -> None:
    rogue = Rogue()
    for frame in OUTLAWS[message]:
        rogue.send(*frame)
    assert rogue.honest.over
    assert message in str(rogue.honest.error)
    kind, request, words = rogue.hear()[-1]
    assert (kind, request) == (Kind.ERROR, 0)
    assert message in str(Refused.from_bytes(words))
    assert_nothing_is_held(rogue.honest)


@pytest.mark.parametrize("mine", [True, False], ids=["response", "request"])
def test_a_long_body_that_ends_wrong_fails_the_call_and_asks_nothing(mine: bool) -> None:
    rogue = Rogue()
    number = rogue.honest.request(b"?", 1e9) if mine else 1
    rogue.hear()
    events = rogue.send(Kind.LONG, number, LONG)
    for _ in range(4):
        events += rogue.send(Kind.CHUNK, number, bytes(CHUNK))
    events += rogue.send(Kind.END, number, ENDING.pack(1 << 20, 5))
    if mine:
        kind, words = failure(list(events))
        assert kind is Broken
        assert "the checksum of a body does not match" in words
    else:
        assert events == []


def test_late_frames_of_what_is_done_are_dropped_unread() -> None:
    rogue = Rogue()
    number = rogue.honest.request(b"", 1e9)
    rogue.hear()
    rogue.honest.cancel(number)
    for kind in (Kind.RESPONSE, Kind.ERROR, Kind.CHUNK, Kind.END, Kind.LONG, Kind.CREDIT):
        payload = {Kind.LONG: LONG, Kind.CREDIT: LONG, Kind.END: bytes(16)}.get(kind, b"\1")
        assert rogue.send(kind, number, payload) == []
    rogue.send(Kind.REQUEST, 5, b"")
    rogue.honest.respond(5, b"")
    assert rogue.hear()[-1] == (Kind.RESPONSE, 5, b"")
    for kind in (Kind.CANCEL, Kind.CREDIT, Kind.CHUNK):
        payload = {Kind.CREDIT: LONG, Kind.CHUNK: b"\1"}.get(kind, b"")
        assert rogue.send(kind, 5, payload) == []
    assert rogue.honest.phase is Phase.OPEN


def test_what_cannot_be_done_here_is_the_callers_fault() -> None:
    rogue = Rogue()
    rogue.send(Kind.REQUEST, 1, b"")
    rogue.honest.respond(1, b"")
    with pytest.raises(UsageError, match="answer is not allowed for a request that is answering"):
        rogue.honest.respond(1, b"")
    number = rogue.honest.request(b"", 1e9)
    with pytest.raises(UsageError, match="refuse is not allowed for a request that is asking"):
        rogue.honest.refuse(number, Refused(Reason.BUSY, ""))


def test_a_connection_shows_what_it_is_at() -> None:
    connection = Connection(dialled=True, number=1, now=0.0)
    connection.request(b"12345", 9.0)
    assert repr(connection) == ("<Connection: open, asking 1, answering 0, 0 bytes in, 5 out>")


def test_limits_say_what_is_wrong() -> None:
    for wrong, message in (
        ({"calls": 0}, "calls must be more than 0"),
        ({"bytes_in": 1}, "bytes_in must be at least longest"),
        ({"window": CHUNK}, "window must be a multiple of 262144, at least 1048576; it is 262144"),
        ({"ping_after": 6.0}, r"ping_after \(6.0 s\) must be at most a third of silent_after"),
    ):
        with pytest.raises(UsageError, match=message):
            Limits(**wrong)  # type: ignore[arg-type]


PUSH = CHUNK // 2


def asked_much(pair: Pair, seconds: float, count: int = 40) -> tuple[int, set[str]]:
    """Ask again and again over a line that takes so long for each request.

    Three are asked for each that is sent. Return how many did not fail, and why others did.
    """
    asked, reasons = 0, set[str]()
    for _ in range(count):
        for _ in range(3):
            try:
                pair.sides[0].request(bytes(PUSH), 1e9, pair.now)
                asked += 1
            except Refused as error:
                reasons.add(str(error))
        pair.move(0, 1)
        pair.later(seconds)
        pair.move(1)
    return asked, reasons


def test_who_asks_more_than_is_sent_in_time_is_refused_at_once() -> None:
    pair = Pair(Limits())
    assert asked_much(pair, 0.001) == (120, set())
    pair.settle()
    asked, reasons = asked_much(pair, 0.1)
    assert 40 <= asked < 60
    (reason,) = reasons
    assert reason == "requests to the peer wait for more than 0.5 s to be sent; try again later"
    assert pair.sides[0]._books.backlog._nbytes <= 1 << 20
    pair.settle()
    assert asked_much(pair, 0.001, 10) == (30, set())


def test_what_is_given_up_waits_no_longer() -> None:
    pair = Pair()
    numbers = [pair.sides[0].request(bytes(PUSH), 1e9, pair.now) for _ in range(4)]
    for number in numbers:
        pair.sides[0].cancel(number)
    assert repr(pair.sides[0]._books.backlog) == "<Backlog: 0 requests, 0 bytes>"
    pair.settle()
