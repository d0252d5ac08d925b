"""`POST /api/train`: learns a text, if the gateway was started with --allow-training."""

from contextlib import aclosing

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from giaann_p2p.errors import TextError
from giaann_p2p.gateway.backend import Learned, Teaching
from giaann_p2p.gateway.context import Context
from giaann_p2p.gateway.failures import Failure, response
from giaann_p2p.gateway.forms import file_in
from giaann_p2p.gateway.openai_requests import decoded
from giaann_p2p.gateway.ours_requests import TextToLearn
from giaann_p2p.gateway.replying import events_of
from giaann_p2p.gateway.sse import Events, event


async def train(context: Context, request: Request) -> Response:
    """Learn the text in a request, and stream its progress."""
    if not context.facts.training:
        text = "this gateway teaches nothing; start it with --allow-training"
        return response(Failure(403, text, "training_not_allowed"))
    given = await _text_in(request)
    if not given.text.strip():
        raise TextError("the text is empty")
    return await events_of(_told(context.backend.train(given.name, given.text)))


async def _text_in(request: Request) -> TextToLearn:
    """Return the text of a request: from JSON, from a form's file, or else the body itself.

    A name in the query replaces a file's own.
    """
    given, body, name = request.headers.get("content-type", ""), await request.body(), "text"
    kind = given.partition(";")[0].strip().lower()
    if kind == "application/json":
        return decoded(body, TextToLearn)
    if kind == "multipart/form-data":
        name, body = file_in(given, body)
    name = request.query_params.get("name", name)[:256]
    try:
        return TextToLearn(name=name, text=body.decode())
    except UnicodeDecodeError as error:
        raise TextError(f"{name} is not in UTF-8: {error.reason} at byte {error.start:,}") from None


async def _told(teaching: Teaching) -> Events:
    async with aclosing(teaching):
        async for one in teaching:
            if isinstance(one, Learned):
                yield event("done", one.report)
            else:
                yield event("progress", msgspec.to_builtins(one))
