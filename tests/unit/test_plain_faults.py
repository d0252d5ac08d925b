"""What is wrong with JSON is told without the words of the library that reads it."""

from typing import Annotated, Literal

import msgspec
import pytest

from giaann_p2p.plain_faults import fault_of


class _Inner(msgspec.Struct, forbid_unknown_fields=True):
    role: Literal["user", "system"]


class _File(msgspec.Struct, forbid_unknown_fields=True):
    count: int
    share: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    stop: (
        Annotated[str, msgspec.Meta(min_length=2, max_length=3)]
        | list[Annotated[str, msgspec.Meta(min_length=1)]]
        | None
    ) = None
    pair: tuple[int, int] = (1, 1)
    key: bytes = b""
    some: Annotated[list[int], msgspec.Meta(max_length=2)] = []
    is_new: bool = True
    inner: list[_Inner] = []
    sizes: dict[str, int] = {}


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("{}", "count is missing"),
        ("[]", "it must be an object in braces, not a list"),
        ('{"count":"x"}', "count must be a whole number, not a text"),
        ('{"count":1.5}', "count must be a whole number, not a number"),
        ('{"count":null}', "count must be a whole number, not null"),
        ('{"count":1,"share":0}', "share must be more than 0"),
        ('{"count":1,"share":3}', "share must be 1 or less"),
        ('{"count":1,"share":"x"}', "share must be a number, not a text"),
        ('{"count":1,"stop":"x"}', "stop must have 2 characters or more"),
        ('{"count":1,"stop":"abcd"}', "stop must have at most 3 characters"),
        ('{"count":1,"stop":[""]}', "stop[0] must not be empty"),
        ('{"count":1,"stop":5}', "stop must be a text or a list, not a whole number"),
        ('{"count":1,"pair":[1]}', "pair must have 2 entries"),
        ('{"count":1,"key":"!"}', "key must be a text in base64"),
        ('{"count":1,"some":[1,2,3]}', "some must have at most 2 entries"),
        ('{"count":1,"is_new":1}', "is_new must be true or false, not a whole number"),
        ('{"count":1,"inner":[{}]}', "inner[0].role is missing"),
        (
            '{"count":1,"inner":[{"role":"me"}]}',
            "inner[0].role must not be 'me', which is none of the choices",
        ),
        ('{"count":1,"sizes":{"x":"y"}}', "a value in sizes must be a whole number, not a text"),
        ('{"count":1,"more":1}', "more is not known here"),
        ('{"count":', "it ends too early"),
        ("", "it ends too early"),
        ("x", "it is not JSON: invalid character (byte 0)"),
        ('{"count":1}x', "it is not JSON: trailing characters (byte 12)"),
    ],
)
def test_a_fault_is_told_in_plain_words(data: str, told: str) -> None:
    with pytest.raises(msgspec.MsgspecError) as error:
        msgspec.json.decode(data.encode(), type=_File)
    assert str(fault_of(error.value)) == told


def test_faults_of_messagepack_are_told_alike() -> None:
    with pytest.raises(msgspec.MsgspecError) as error:
        msgspec.msgpack.decode(b"\xc1", type=int)
    assert str(fault_of(error.value)) == "it is not MessagePack: invalid opcode '\\xc1' (byte 0)"


def test_faults_that_are_none_of_the_form_have_words_too() -> None:
    deep, latin = RecursionError("maximum recursion depth"), "ü".encode("latin-1")
    assert str(fault_of(deep)) == "it is nested too deeply"
    with pytest.raises(UnicodeDecodeError) as error:
        latin.decode()
    assert str(fault_of(error.value)) == "it is no text in UTF-8 (byte 0)"
    assert str(fault_of(ValueError("another fault"))) == "another fault"
    assert str(fault_of(ValueError("n = 3 - at `$.a[0]`"))) == "a[0]: n = 3"
