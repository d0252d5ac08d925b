"""`POST /v1/completions`: continues one or several prompts, at once or as a stream."""

import math
import secrets
import time
from collections.abc import Sequence
from contextlib import aclosing
from typing import NamedTuple

from msgspec import UNSET, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from giaann_p2p.gateway.context import Context
from giaann_p2p.gateway.failures import BadField
from giaann_p2p.gateway.merging import gathered, merged
from giaann_p2p.gateway.openai_replies import (
    Completion,
    CompletionChoice,
    Logprobs,
    Usage,
)
from giaann_p2p.gateway.openai_requests import (
    CompletionRequest,
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


class Task(NamedTuple):
    """One answer that is to be generated."""

    prompt: str
    manner: Manner


class Work(NamedTuple):
    """A request, and the answers that it wants: `n` for each prompt, in that order."""

    wanted: CompletionRequest
    tasks: list[Task]
    id: str
    created: int


async def complete(context: Context, request: Request) -> Response:
    """Answer a request for completions."""
    work = work_of(context, decoded(await request.body(), CompletionRequest))
    if work.wanted.stream:
        return await stream_of(streamed(context, work))
    with context.prompts.admitted(len(work.tasks)):
        found = await gathered(_whole(context, work, task) for task in work.tasks)
    choices = [_choice(work, number, pieces) for number, pieces in enumerate(found)]
    said = sum(len(piece.tokens) for pieces in found for piece in pieces)
    return as_json(_reply(context, work, choices, usage_of(context, work.wanted.prompts, said)))


def work_of(context: Context, wanted: CompletionRequest) -> Work:
    """Check a request, and return the answers that it wants."""
    facts, limits = context.facts, context.limits
    check_model(wanted.model, facts.model)
    require_probabilities(facts.profile, "logprobs", wanted.logprobs is not None)
    each = manners(wanted, facts.profile, wanted.max_tokens, limits.tokens)
    tasks = [Task(prompt, manner) for prompt in wanted.prompts for manner in each]
    if len(tasks) > limits.choices:
        raise BadField(f"n: {len(tasks)} answers at once; at most {limits.choices}", "n")
    return Work(wanted, tasks, f"cmpl-{secrets.token_hex(12)}", int(time.time()))


async def streamed(context: Context, work: Work) -> Events:
    """Yield the chunks of a request's answers as they come."""
    said, echoed, offsets = 0, set[int](), [0] * len(work.tasks)
    usage = None if work.wanted.with_usage else UNSET
    stops = work.wanted.stops

    def chunk(number: int, piece: Piece) -> bytes:
        lead = ""
        if work.wanted.echo and number not in echoed:
            echoed.add(number)
            lead = work.tasks[number].prompt
        told = _logprobs(work, lead, piece.tokens, offsets[number])
        choice = CompletionChoice(
            text=lead + piece.text, index=number, logprobs=told, finish_reason=piece.finish
        )
        offsets[number] += len(lead) + sum(len(token.text) for token in piece.tokens)
        return unnamed(_reply(context, work, [choice], usage))

    pieces = [context.prompts.pieces(*task, stops) for task in work.tasks]
    with context.prompts.admitted(len(pieces)):
        async with aclosing(merged(pieces)) as parts:
            async for number, part in parts:
                said += sum(len(piece.tokens) for piece in part)
                yield b"".join(chunk(number, piece) for piece in part)
    if work.wanted.with_usage:
        yield unnamed(_reply(context, work, [], usage_of(context, work.wanted.prompts, said)))
    yield DONE


async def _whole(context: Context, work: Work, task: Task) -> list[Piece]:
    async with aclosing(context.prompts.pieces(*task, work.wanted.stops)) as pieces:
        return [piece async for part in pieces for piece in part]


def _choice(work: Work, number: int, pieces: Sequence[Piece]) -> CompletionChoice:
    lead = work.tasks[number].prompt if work.wanted.echo else ""
    tokens = [token for piece in pieces for token in piece.tokens]
    return CompletionChoice(
        text=lead + "".join(piece.text for piece in pieces),
        index=number,
        logprobs=_logprobs(work, lead, tokens, 0),
        finish_reason=pieces[-1].finish,
    )


def _logprobs(work: Work, lead: str, tokens: Sequence[AnyToken], offset: int) -> Logprobs | None:
    """Return the probabilities of tokens; those of an echoed prompt are not known."""
    if work.wanted.logprobs is None:
        return None
    texts = [lead] * bool(lead) + [token.text for token in tokens]
    logs: list[float | None] = [None] * bool(lead)
    logs += [logprob(token) for token in tokens]
    best: list[dict[str, float] | None] = [None] * bool(lead)
    best += [_best(token) for token in tokens]
    offsets = []
    for text in texts:
        offsets.append(offset)
        offset += len(text)
    if not work.wanted.logprobs:
        best = [None] * len(texts)
    return Logprobs(tokens=texts, token_logprobs=logs, top_logprobs=best, text_offset=offsets)


def _best(token: AnyToken) -> dict[str, float]:
    """Return the logarithms of the probabilities of the best candidates and of the token."""
    found = {word: logarithm(share) for word, share in getattr(token, "rivals", ())}
    return found | {token.text: logprob(token)}


def logprob(token: AnyToken) -> float:
    """Return the logarithm of a token's probability."""
    return logarithm(getattr(token, "probability", 0.0))


def logarithm(share: float) -> float:
    """Return the logarithm of a probability; -9999, as is usual, where it is too small."""
    return round(math.log(share), 6) if share > 0 else -9999.0


def usage_of(context: Context, prompts: Sequence[str], said: int) -> Usage:
    """Return the numbers of tokens of some prompts and their answers."""
    read = sum(map(context.count, prompts))
    return Usage(prompt_tokens=read, completion_tokens=said, total_tokens=read + said)


def _reply(
    context: Context, work: Work, choices: list[CompletionChoice], usage: Usage | UnsetType | None
) -> Completion:
    return Completion(
        id=work.id,
        created=work.created,
        model=context.facts.model,
        choices=choices,
        usage=usage,
    )
