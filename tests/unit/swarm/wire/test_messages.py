"""Messages as bytes, and back."""

from collections.abc import Callable, Iterator
from typing import get_args

import msgspec
import msgspec.inspect as kinds_of
import pytest

from giaann_p2p.errors import MessageError
from giaann_p2p.model.manner import MOST_RIVALS
from giaann_p2p.store.layout import MOST_SHARDS
from giaann_p2p.swarm.wire.admission import MAY_ASK
from giaann_p2p.swarm.wire.member_messages import AskManifest
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import (
    MOST_BYTES,
    VERSION,
    AnyMessage,
    AnyQuestion,
    Part,
    decode,
    decode_question,
    doublings_of,
    encode,
)
from giaann_p2p.swarm.wire.prompt_messages import MOST_TOLD, Continued, ContinuedSubwords, Cost
from giaann_p2p.swarm.wire.row_mark import MARK_BYTES, SALT_BYTES
from giaann_p2p.swarm.wire.row_messages import MOST_READ
from giaann_p2p.swarm.wire.training_messages import Learn, learn_order
from tests.helpers_hostile import peak_of
from tests.helpers_swarm import JOB, MESSAGES, SUBWORD, TOKEN


def test_there_is_one_of_each_kind() -> None:
    kinds: set[type] = set(AnyMessage.__args__)
    assert {type(message) for message in MESSAGES} == kinds
    assert kinds == set(sent_kinds(Message))


def sent_kinds(kind: type[Message]) -> list[type]:
    """Return the kinds of a kind that are sent: those with a tag."""
    own = [kind] if kind.__struct_config__.tag else []
    return own + [end for one in kind.__subclasses__() for end in sent_kinds(one)]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_what_is_sent_comes(message: Message) -> None:
    data = encode(message)
    assert data[0] == VERSION
    assert decode(data) == message
    assert decode(memoryview(data)) == message
    for cut in range(len(data)):
        with pytest.raises(MessageError):
            decode(data[:cut])
    with pytest.raises(MessageError, match="cannot be read"):
        decode(data + b"\0")


def raw(*fields: object) -> bytes:
    return bytes([VERSION]) + msgspec.msgpack.encode(fields)


@pytest.mark.parametrize(
    "data",
    [
        raw("order", b""),
        raw(),
        raw("offer"),
        raw("offer", 1, 2, 3),
        raw("offer", 1, -1),
        raw("fetch", b"", b"", -1),
        raw("read", b"", b"", bytes(MARK_BYTES * MOST_READ + 1)),
        raw("read", b"", b"", b"", bytes(SALT_BYTES + 1)),
        raw("rows", b"", b"", bytes(2 * MOST_READ + 1)),
        raw("offer", "1"),
        raw("offer", -1),
        raw("offer", MOST_SHARDS),
        raw("part?", 1, b"", -1),
        raw("push", JOB, -1, b"", b""),
        raw("push", JOB, 1 << 32, b"", b""),
        raw("push", JOB[1:], 1, b"", b""),
        raw("push", JOB + b"!", 1, b"", b""),
        raw("push", JOB, 1.5, b"", b""),
        raw("fetched", [[JOB, 1 << 32, b"", b""]], b""),
        raw("fetched", [[JOB[1:], 1, b"", b""]], b""),
        raw("fetched", [[JOB, 1, b"", b"", b""]], b""),
        raw("fetched", [[JOB, 1, b"", b""]] * ((1 << 16) + 1), b""),
        raw("compare", b"", [b""] * (MOST_SHARDS + 1)),
        raw("compared", b"", [0] * (MOST_SHARDS + 1), []),
        raw("compared", b"", [], [b""] * (MOST_SHARDS + 1)),
        raw("compared", b"", ["0"], []),
        raw("ask", bytes(16), "Bees", {"max_tokens": 0}, b""),
        raw("ask", bytes(16), "Bees", {"timing": "late"}, b""),
        raw("ask", bytes(16), "Bees", {"beam": {"width": 0}}, b""),
        raw("ask", bytes(15), "Bees", {}, b""),
        raw("ask", bytes(16), "B" * (1 << 17), {}, b""),
        raw("told", "", [], [], "bored"),
        raw("told", "", [], [["a", "a", ["b", None], "late", 1.5, 1]], None),
        raw("refused", b"\xff"),
        bytes([VERSION]) + b"\x92\xa7refused\xa2\xff\xfe",  # a text that is no UTF-8
        bytes([VERSION]) + b"\x91" * 5000,
        bytes([VERSION]) + b"\xdd\xff\xff\xff\xff\xa7compare",
    ],
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(MessageError, match="cannot be read"):
        decode(data)


def test_every_list_of_a_message_is_bounded() -> None:
    found = dict(lists(kinds_of.type_info(AnyMessage), ""))
    assert [place for place, most in found.items() if most is None] == []
    assert len(found) > 30
    assert found["ContinuedSubwords.tokens.SubwordToken.rivals"] == MOST_RIVALS
    assert found["Ask.manner.Manner.sampling.Sampling.stop"] == 16


def lists(kind: kinds_of.Type, place: str) -> Iterator[tuple[str, int | None]]:
    """Return the lists of a type by the fields that lead to them, and their longest lengths."""
    if isinstance(kind, kinds_of.CollectionType):
        yield place, kind.max_length
        yield from lists(kind.item_type, place)
    elif isinstance(kind, kinds_of.StructType | kinds_of.NamedTupleType):
        for field in kind.fields:
            yield from lists(field.type, f"{place}.{kind.cls.__name__}.{field.name}".strip("."))
    else:
        assert not isinstance(kind, kinds_of.DictType | kinds_of.AnyType | kinds_of.RawType)
        inner = getattr(kind, "types", getattr(kind, "item_types", ()))
        for one in inner:
            yield from lists(one, place)


def test_a_byte_of_an_answer_is_not_unpacked_to_an_object_without_end() -> None:
    """An empty list is a `Cost`, and an empty text or list may be anything else."""
    for empty in (b"\x90", b"\xa0", b"\x93\xa0\xa0\x90"):
        for place in range(1, 6):
            fields = [b"\xa0", b"\x90", b"\x90", b"\xc0", b"\x90"]
            fields[place - 1] = b"\xdd\x00\x10\x00\x00" + empty * (1 << 20)
            data = bytes([VERSION]) + b"\x96\xa4told" + b"".join(fields)
            assert peak_of(lambda data=data: refused(data, decode)) < 1 << 24  # type: ignore[misc]
            asked = peak_of(lambda data=data: refused(data, decode_question))  # type: ignore[misc]
            assert asked < 1 << 16


def refused(data: bytes, read: Callable[[bytes], Message]) -> None:
    with pytest.raises(MessageError, match="cannot be read"):
        read(data)


def test_the_longest_answer_passes() -> None:
    for told in (
        Continued("", ["zorp"] * 2000, [TOKEN] * MOST_TOLD, None, [Cost()] * MOST_TOLD),
        ContinuedSubwords("", [], [SUBWORD] * MOST_TOLD, None, [Cost()] * MOST_TOLD),
    ):
        assert decode(encode(told)) == told


def test_what_is_asked_is_a_question() -> None:
    """Each type of question has a rule that says who may ask it."""
    assert {*get_args(AnyQuestion)} == {*MAY_ASK, AskManifest}
    for message in MESSAGES:
        if isinstance(message, AnyQuestion):
            assert decode_question(encode(message)) == message
        else:
            refused(encode(message), decode_question)


@pytest.mark.parametrize("doublings", [1, 16])
def test_a_question_says_how_often_shards_were_doubled(doublings: int) -> None:
    plain, data = encode(MESSAGES[0]), encode(MESSAGES[0], doublings)
    assert (doublings_of(plain), doublings_of(data)) == (0, doublings)
    assert data == bytes([8, doublings]) + plain[1:]
    assert decode(memoryview(data)) == MESSAGES[0]
    for none in (b"\x08", bytes([8, 0]) + plain[1:], bytes([8, 17]) + plain[1:]):
        with pytest.raises(MessageError, match="doubled more often than 16 times"):
            decode(none)


def test_an_order_to_learn_names_no_layout_that_was_never_doubled() -> None:
    plain = learn_order(b"j" * 16, 4, ["Bees."], 0)
    assert encode(plain) == b"\7\x94\xa5learn\xc4\x10" + b"j" * 16 + b"\4\x91\xa5Bees."
    assert plain.doublings == 0
    for doublings in (1, 16):
        order = decode(encode(learn_order(b"j" * 16, 4, ["Bees."], doublings)))
        assert isinstance(order, Learn)
        assert (order.chunk, order.sentences, order.doublings) == (4, ["Bees."], doublings)


def test_another_version_is_named() -> None:
    with pytest.raises(MessageError, match="version 1, but this peer reads version 7"):
        decode(b"\1" + encode(MESSAGES[0])[1:])
    with pytest.raises(MessageError, match="version none"):
        decode(b"")


def test_nothing_is_too_long() -> None:
    longest = Part(bytes(MOST_BYTES - 12))
    assert len(encode(longest)) == MOST_BYTES
    assert decode(encode(longest)) == longest
    with pytest.raises(MessageError, match="8,388,609 bytes; at most 8,388,608 can be sent"):
        encode(Part(bytes(MOST_BYTES - 11)))
    with pytest.raises(MessageError, match="8,388,609 bytes; at most 8,388,608 are read"):
        decode(encode(longest) + b"\0")
