"""Requests that begin together: one that finds no room for all of its answers begins none."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message

from giaann_p2p.gateway.chat import chat
from giaann_p2p.gateway.completions import complete
from giaann_p2p.gateway.context import Context, context_of
from giaann_p2p.gateway.failures import Busy
from giaann_p2p.gateway.limits import Limits
from giaann_p2p.gateway.ours import prompt
from tests.unit.gateway.serving import Stub

Handler = Callable[[Context, Request], Awaitable[Response]]
COMPLETION = {"model": "bees", "prompt": ["a", "b"]}
CHAT = {"model": "bees", "n": 2, "messages": [{"role": "user", "content": "a"}]}


def request_of(body: dict[str, Any]) -> Request:
    async def receive() -> Message:
        return {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}

    return Request({"type": "http", "method": "POST", "headers": []}, receive)


async def data_of(response: Response) -> bytes:
    """Return the body of a response."""
    data = list[bytes]()

    async def send(message: Message) -> None:
        data.append(message.get("body", b""))

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    await response({"type": "http", "method": "POST"}, receive, send)
    return b"".join(data)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("handler", "body"), [(complete, COMPLETION), (chat, CHAT)], ids=["completion", "chat"]
)
def test_a_request_begins_all_of_its_answers_or_none(
    handler: Handler, body: dict[str, Any], stream: bool
) -> None:
    async def play() -> None:
        backend = Stub()
        context = context_of(backend, Limits(prompts=3), len)
        asked = [handler(context, request_of({**body, "stream": stream})) for _ in range(2)]
        first, second = await asyncio.gather(*asked, return_exceptions=True)
        assert isinstance(second, Busy)
        assert isinstance(first, Response)
        data = await data_of(first)
        assert data.count(b" 3") == 2
        assert (len(backend.manners), backend.now) == (2, 0)  # answers that began, and that go on
        again = await handler(context, request_of({**body, "stream": stream}))
        assert b" 3" in await data_of(again)  # the room is free again

    asyncio.run(play())


def test_a_prompt_finds_no_room_while_a_stream_is_open() -> None:
    async def play() -> None:
        context = context_of(Stub(), Limits(prompts=2), len)
        streamed = await complete(context, request_of({**COMPLETION, "stream": True}))
        with pytest.raises(Busy):
            await prompt(context, request_of({"prompt": "a"}))
        await data_of(streamed)
        assert b"event: done" in await data_of(await prompt(context, request_of({"prompt": "a"})))

    asyncio.run(play())
