"""`POST /v1/chat/completions`: continues the last message of the user, at once or as a stream.

The model was not made for chats: it continues a text. So it continues only the last message of the
user, and a header says what was ignored.
"""

import secrets
import time
from collections.abc import Sequence
from contextlib import aclosing
from typing import NamedTuple

from msgspec import UNSET, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from giaann_p2p.errors import PromptError
from giaann_p2p.gateway.completions import logarithm, logprob, usage_of
from giaann_p2p.gateway.context import Context
from giaann_p2p.gateway.failures import BadField, BadMessage
from giaann_p2p.gateway.merging import gathered, merged
from giaann_p2p.gateway.openai_replies import (
    Chat,
    ChatChoice,
    ChatLogprobs,
    ChatPart,
    ChatPartChoice,
    Said,
    SaidPart,
    TokenLogprob,
    Usage,
)
from giaann_p2p.gateway.openai_requests import (
    ChatRequest,
    check_model,
    decoded,
    manners,
    require_probabilities,
)
from giaann_p2p.gateway.prompts import Piece
from giaann_p2p.gateway.replying import as_json, stream_of
from giaann_p2p.gateway.sse import DONE, Events, unnamed
from giaann_p2p.model.manner import Manner
from giaann_p2p.model.said import AnyToken

IGNORED = "x-giaann-ignored"
"""The header that names the parts of a request that had no effect."""


class Talk(NamedTuple):
    """A request, and how each of its answers is to be generated."""

    wanted: ChatRequest
    manners: list[Manner]
    id: str
    created: int


async def chat(context: Context, request: Request) -> Response:
    """Answer a chat request."""
    wanted = decoded(await request.body(), ChatRequest)
    try:
        return await _answered(context, _talk(context, wanted))
    except PromptError as error:
        raise BadMessage(str(error)) from None


async def _answered(context: Context, talk: Talk) -> Response:
    headers = {IGNORED: talk.wanted.ignored} if talk.wanted.ignored else {}
    if talk.wanted.stream:
        return await stream_of(_streamed(context, talk), headers)
    with context.prompts.admitted(len(talk.manners)):
        found = await gathered(_whole(context, talk, manner) for manner in talk.manners)
    choices = [_choice(talk, number, pieces) for number, pieces in enumerate(found)]
    said = sum(len(piece.tokens) for pieces in found for piece in pieces)
    reply = Chat(
        id=talk.id,
        created=talk.created,
        model=context.facts.model,
        choices=choices,
        usage=usage_of(context, [talk.wanted.prompt], said),
    )
    return as_json(reply, headers)


def _talk(context: Context, wanted: ChatRequest) -> Talk:
    facts, limits = context.facts, context.limits
    check_model(wanted.model, facts.model)
    require_probabilities(facts.profile, "logprobs", bool(wanted.logprobs))
    require_probabilities(facts.profile, "top_logprobs", bool(wanted.top_logprobs))
    if wanted.top_logprobs and not wanted.logprobs:
        raise BadField("top_logprobs: set logprobs to true, or leave it out", "top_logprobs")
    field, tokens = wanted.tokens
    each = manners(wanted, facts.profile, tokens, limits.tokens, field)
    if len(each) > limits.choices:
        raise BadField(f"n: at most {limits.choices}; it is {len(each)}", "n")
    return Talk(wanted, each, f"chatcmpl-{secrets.token_hex(12)}", int(time.time()))


async def _streamed(context: Context, talk: Talk) -> Events:
    prompt, stops, said = talk.wanted.prompt, talk.wanted.stops, 0
    usage = None if talk.wanted.with_usage else UNSET
    begun = set[int]()

    def chunks(number: int, piece: Piece) -> bytes:
        lead = b""
        if number not in begun:
            begun.add(number)
            first = SaidPart(role="assistant", content="")
            lead = unnamed(_part(context, talk, _delta(talk, number, first), usage))
        delta = SaidPart(content=piece.text) if piece.text or not piece.finish else SaidPart()
        return lead + unnamed(_part(context, talk, _delta(talk, number, delta, piece), usage))

    pieces = [context.prompts.pieces(prompt, one, stops) for one in talk.manners]
    with context.prompts.admitted(len(pieces)):
        async with aclosing(merged(pieces)) as parts:
            async for number, part in parts:
                said += sum(len(piece.tokens) for piece in part)
                yield b"".join(chunks(number, piece) for piece in part)
    if talk.wanted.with_usage:
        yield unnamed(_part(context, talk, None, usage_of(context, [prompt], said)))
    yield DONE


def _delta(talk: Talk, number: int, delta: SaidPart, piece: Piece | None = None) -> ChatPartChoice:
    if piece is None:
        return ChatPartChoice(index=number, delta=delta)
    told = _logprobs(talk, piece.tokens)
    return ChatPartChoice(index=number, delta=delta, logprobs=told, finish_reason=piece.finish)


def _part(
    context: Context, talk: Talk, choice: ChatPartChoice | None, usage: Usage | UnsetType | None
) -> ChatPart:
    return ChatPart(
        id=talk.id,
        created=talk.created,
        model=context.facts.model,
        choices=[] if choice is None else [choice],
        usage=usage,
    )


async def _whole(context: Context, talk: Talk, manner: Manner) -> list[Piece]:
    wanted = talk.wanted
    async with aclosing(context.prompts.pieces(wanted.prompt, manner, wanted.stops)) as pieces:
        return [piece async for part in pieces for piece in part]


def _choice(talk: Talk, number: int, pieces: Sequence[Piece]) -> ChatChoice:
    tokens = [token for piece in pieces for token in piece.tokens]
    return ChatChoice(
        index=number,
        message=Said(content="".join(piece.text for piece in pieces)),
        logprobs=_logprobs(talk, tokens),
        finish_reason=pieces[-1].finish or "stop",
    )


def _logprobs(talk: Talk, tokens: Sequence[AnyToken]) -> ChatLogprobs | None:
    if not talk.wanted.logprobs:
        return None
    return ChatLogprobs(content=[_logprob(token) for token in tokens])


def _logprob(token: AnyToken) -> TokenLogprob:
    """Return a token's probability, and those of the best candidates, if they were asked for."""
    best = [_told(word, logarithm(share)) for word, share in getattr(token, "rivals", ())]
    return _told(token.text, logprob(token), best)


def _told(text: str, logprob: float, best: Sequence[TokenLogprob] = ()) -> TokenLogprob:
    return TokenLogprob(
        token=text, logprob=logprob, bytes=list(text.encode()), top_logprobs=list(best)
    )
