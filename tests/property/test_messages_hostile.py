"""Whatever the bytes are, they are a message, or refused; and whoever gets it goes on."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from giaann_p2p.errors import MessageError
from giaann_p2p.swarm.wire.actions import Apply, Call, Reply
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import VERSION, Push, decode, encode
from tests.helpers_swarm import MESSAGES, NOW, A, Around, B, C, Side, store
from tests.property.test_swarm_parsers_hostile import anything, edits


def read_or_refused(data: bytes) -> Message | None:
    try:
        message = decode(data)
    except MessageError:
        return None
    assert decode(encode(message)) == message
    return message


drawn = st.sampled_from(MESSAGES).flatmap(lambda message: edits(encode(message)))


@st.composite
def with_other_fields(draw: st.DrawFn) -> bytes:
    """Draw messages with anything in one of their fields, or with one too many or too few."""
    fields = msgspec.msgpack.decode(encode(draw(st.sampled_from(MESSAGES)))[1:])
    at = draw(st.integers(0, len(fields)))
    fields[at : at + draw(st.integers(0, 2))] = [draw(anything)]
    return bytes([VERSION]) + msgspec.msgpack.encode(fields)


hostile = drawn | with_other_fields() | st.binary(max_size=200)


@given(hostile)
def test_bytes_are_a_message_or_refused(data: bytes) -> None:
    read_or_refused(data)


@given(hostile)
def test_any_question_is_answered(data: bytes) -> None:
    message = read_or_refused(data)
    if message is None:
        return
    side = Side(A, Around(A), store(range(3), [1, 2]))
    before = side.store.sets(range(3))
    assert isinstance(side.answers.to(message), Message)
    if isinstance(message, Push):
        (action,) = side.core.asked(7, A, message, NOW)
        assert isinstance(action, Reply | Apply)
        side.do([action], NOW)
        assert [reply.ticket for reply in side.told(Reply)] == [7]
    else:
        assert side.store.sets(range(3)) == before


@given(st.lists(hostile, min_size=1, max_size=6))
def test_any_answer_ends_its_question(answers: list[bytes]) -> None:
    around = Around(A, B, C)
    side = Side(A, around, store(range(4), [1, 2]))
    for at, data in enumerate(answers):
        side.tick(NOW + 10 * at)
        for call in list(side.calls):
            side.answer(call, read_or_refused(data), NOW + 10 * at)
    for call in list(side.calls):
        side.answer(call, None, NOW + 100)
    side.done.clear()
    side.tick(NOW + 200)
    assert {call.peer for call in side.told(Call)} == {B, C}  # it asks as if nothing had been
