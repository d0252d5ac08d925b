"""The handlers of `/api`, but for events and training: state, peers, columns, nouns, prompts."""

from contextlib import aclosing
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from giaann_p2p.client.plain import cost_json, token_json
from giaann_p2p.client.prompting import Answer
from giaann_p2p.gateway.asking import OVERVIEW
from giaann_p2p.gateway.context import Context
from giaann_p2p.gateway.failures import BadField, NotKnown
from giaann_p2p.gateway.openai_requests import decoded
from giaann_p2p.gateway.ours_requests import FOUND, LEADS, MOST_NOUN, WORDS, PromptRequest
from giaann_p2p.gateway.replying import as_json, events_of
from giaann_p2p.gateway.sse import Events, event
from giaann_p2p.model.manner import Manner
from giaann_p2p.model.prompt import checked_prompt
from giaann_p2p.model.said import AnyToken
from giaann_p2p.swarm.wire.prompt_messages import Cost


async def info(context: Context, request: Request) -> Response:
    """Return the description of the swarm or the brain."""
    return as_json(context.backend.facts)


async def status(context: Context, request: Request) -> Response:
    """Return the state of the swarm or the brain."""
    if request.headers.get("accept") == OVERVIEW:
        found = await context.backend.overview()
        if found is not None:
            data = msgspec.msgpack.encode((context.facts.name, found))
            return Response(data, media_type=OVERVIEW)
    return as_json(await context.backend.status())


async def peers(context: Context, request: Request) -> Response:
    """Return the peers, and who holds each shard."""
    return as_json(await context.backend.peers())


async def jobs(context: Context, request: Request) -> Response:
    """Return the texts that were learned, as far as they are known."""
    return as_json(await context.backend.jobs())


async def column(context: Context, request: Request) -> Response:
    """Return a noun's column."""
    noun: str = request.path_params["noun"]
    if not noun.strip() or len(noun) > MOST_NOUN:
        raise BadField(f"a noun has 1 to {MOST_NOUN} characters", "noun")
    found = await context.backend.column(noun, WORDS.of(request), LEADS.of(request))
    if found is None:
        raise NotKnown(f"{noun!r} was never learned as a noun; try another form of it")
    lost = context.backend.lost
    return as_json(found, {"x-giaann-lost": lost} if lost else None)


async def search(context: Context, request: Request) -> Response:
    """Return the nouns that begin with a text."""
    prefix = request.query_params.get("q", "")[:MOST_NOUN]
    return as_json(await context.backend.search(prefix, FOUND.of(request)))


async def prompt(context: Context, request: Request) -> Response:
    """Continue a prompt; stream each token with the evidence for it."""
    wanted = decoded(await request.body(), PromptRequest)
    text, manner = checked_prompt(wanted.prompt), wanted.manner(context)
    return await events_of(_answered(context, text, manner))


async def _answered(context: Context, text: str, manner: Manner) -> Events:
    """Yield the events of an answer; the first comes with the first token."""
    told, last = 0, b""  # how many tokens were sent, and what is sent with the end
    with context.prompts.admitted(1):
        async with (
            context.prompts.answering(text, manner) as answer,
            aclosing(context.prompts.tokens(answer)) as tokens,
        ):
            async for came in tokens:
                found = b"" if told else event("begun", _begun(answer, context.backend.lost))
                found += b"".join(map(_said, came, answer.costs[told:]))
                told += len(came)
                if answer.stopped:  # the end comes with these
                    last = found
                    break
                yield found
            if not told:
                last = event("begun", _begun(answer, context.backend.lost))
            whole = answer.completion + "".join(token.text for token in answer.tokens)
            yield last + event("done", {"stopped": answer.stopped or "end", "text": whole})


def _begun(answer: Answer, lost: str) -> dict[str, Any]:
    cost = None if answer.begun is None else cost_json(answer.begun)
    told = {"completion": answer.completion, "unknown": answer.unknown, "cost": cost}
    return told | ({"lost": lost} if lost else {})


def _said(token: AnyToken, cost: Cost) -> bytes:
    told = token_json(token) | {"tier": str(token.timing), "cost": cost_json(cost)}
    return event("token", told)
