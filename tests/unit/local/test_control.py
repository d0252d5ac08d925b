"""Questions to a supervisor, wrong ones among them."""

import asyncio
import os
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.local import control
from giaann_p2p.local.control import MOST_QUESTION, Add, Answer, Counter, Look, Question
from giaann_p2p.local.errors import LocalSwarmError


async def answer(question: Question) -> Answer:
    match question:
        case Look():
            return Answer(link="L")
        case Add(role="bees"):
            raise UsageError("there is no role 'bees'")
        case _:
            raise LocalSwarmError("the swarm is ending")


def asked(folder: Path, *data: bytes) -> list[Answer]:
    """Send lines, and return what comes until the other side closes, or as many answers."""

    async def ask() -> list[Answer]:
        counter = Counter(answer)
        await counter.open(folder / "s")
        try:
            reader, writer = await asyncio.open_unix_connection(folder / "s")
            writer.writelines(data)
            found: list[Answer] = []
            with suppress(ConnectionError):
                while len(found) < len(data) and (line := await reader.readline()):
                    found.append(control.read_answer(line))
            writer.close()
            return found
        finally:
            await counter.close()

    return asyncio.run(ask())


def test_questions_are_answered_in_order(tmp_path: Path) -> None:
    found = asked(
        tmp_path, b'{"type":"look"}\n', b'{"type":"add","role":"bees"}\n{"type":"down"', b"}\n"
    )
    assert found == [
        Answer(link="L"),
        Answer(error="there is no role 'bees'", usage=True),
        Answer(error="the swarm is ending"),
    ]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b"\n", "Input data was truncated"),
        (b"fly!\n", "JSON is malformed"),
        (b"{}\n", "missing required field `type`"),
        (b'{"type":"fly"}\n', "Invalid value 'fly'"),
        (b'{"type":"kill","name":"a"}\n', "missing required field `number`"),
        (b'{"type":"kill","name":1,"number":9}\n', "Expected `str`, got `int` - at `$.name`"),
        (b'{"type":"add","role":"x","count":1e99}\n', "Expected `int`, got `float`"),
        (b"\xff\xfe\n", "malformed"),
    ],
)
def test_what_is_no_question_is_said(tmp_path: Path, line: bytes, error: str) -> None:
    (found,) = asked(tmp_path, line)
    assert found.usage
    assert found.error.startswith("invalid request: ")
    assert error in found.error


def test_who_asks_without_end_is_cut_off(tmp_path: Path) -> None:
    assert asked(tmp_path, b"x" * (3 * MOST_QUESTION)) == []


def test_a_stranger_is_not_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "_CREDENTIALS", Stranger())
    assert asked(tmp_path, b'{"type":"look"}\n') == []


class Stranger:
    size = 12

    def unpack(self, _data: bytes) -> tuple[int, int, int]:
        return os.getpid(), os.getuid() + 12345, os.getgid()


def test_only_the_owner_can_use_the_socket(tmp_path: Path) -> None:
    async def look() -> int:
        counter = Counter(answer)
        await counter.open(tmp_path / "s")
        mode = (tmp_path / "s").stat().st_mode
        await counter.close()
        return mode

    assert asyncio.run(look()) & 0o777 == 0o600


def test_a_place_that_is_taken_is_said(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "s"))
        with pytest.raises(
            UsageError, match=r"cannot listen on the socket .*: Address already in use"
        ):
            asked(tmp_path)
