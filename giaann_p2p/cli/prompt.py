"""`giaann prompt` and `giaann eval`: continue a prompt, and measure a swarm's accuracy."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from giaann_p2p.cli import present
from giaann_p2p.cli.arrival import arrived
from giaann_p2p.cli.link_option import Join, Json
from giaann_p2p.cli.manner import (
    Answers,
    BeamSize,
    Bits,
    Device,
    Explain,
    Feed,
    FeedName,
    GradedActivations,
    GradedStrengths,
    MaxTokens,
    Penalty,
    Readout,
    SeedNumber,
    SeedTokens,
    Stop,
    Stream,
    Temperature,
    Text,
    Timing,
    TimingName,
    TopK,
    TopP,
    manner_of,
    samplings_of,
    text_of,
    variant_of,
)
from giaann_p2p.cli.through_gateway import NoGateway, gateway_to, oracle_at
from giaann_p2p.cli.verified import Verify, complain_of, lies_json, settled, share_of
from giaann_p2p.client.plain import cost_json, token_json
from giaann_p2p.exit_codes import FAILED, NOTHING
from giaann_p2p.gateway.asking import Away
from giaann_p2p.terminal import complain, joining, progress_bar, readable, say, say_json

if TYPE_CHECKING:
    from giaann_p2p import Generation, Score
    from giaann_p2p.client.oracle import Oracle
    from giaann_p2p.client.prompting import Answer
    from giaann_p2p.gateway.whereabouts import Whereabouts
    from giaann_p2p.model.manner import Manner

Local = Annotated[
    bool, typer.Option("--local", help="Compute on this machine, with rows of the storage peers.")
]
Stats = Annotated[bool, typer.Option("--stats", help="Show what each token cost.")]


def prompt(
    text: Text,
    join: Join,
    max_tokens: MaxTokens = 80,
    timing: Timing = TimingName.AUTO,
    beam: BeamSize = None,
    stream: Stream = False,
    explain: Explain = False,
    stats: Stats = False,
    graded_strengths: GradedStrengths = False,
    graded_activations: GradedActivations = False,
    temperature: Temperature = 0.0,
    top_k: TopK = 0,
    top_p: TopP = 1.0,
    seed: SeedNumber = 0,
    repetition_penalty: Penalty = 1.0,
    stop: Stop = None,
    answers: Answers = 1,
    local: Local = False,
    verify: Verify = False,
    device: Device = "auto",
    no_gateway: NoGateway = False,
    as_json: Json = False,
) -> None:
    """Continue a prompt from what a swarm has learned, and print both.

    The swarm's compute peers compute the answer; if one fails meanwhile, another continues.
    """
    drawing = samplings_of(temperature, top_k, top_p, seed, repetition_penalty, stop, answers)
    manners = [
        manner_of(max_tokens, timing, beam, graded_strengths, graded_activations, sampling)
        for sampling in drawing
    ]
    how = _How(text_of(text), stream, explain, stats, as_json)
    where = gateway_to(join, no_gateway or local or verify or device != "auto")

    async def asked(joined: Callable[[], None]) -> "list[Generation]":
        found = await _by_gateway(where, how, manners, joined) if where is not None else []
        if not manners:
            return found
        from giaann_p2p.cli.visiting import oracle_of

        async with oracle_of(join, local, device, share_of(verify)) as ask:
            joined()
            arrived(ask.visiting)
            found += [await how.answered(ask, manner) for manner in manners]
            complain_of(ask.visiting)
            return found

    with joining(as_json) as joined:
        found = asyncio.run(asked(joined))
    if not any(one.text for one in found):
        complain(present.nothing_line(found[-1], timing.value, stop))
        raise typer.Exit(NOTHING)


class _How(NamedTuple):
    """How the answers to a prompt are printed."""

    text: str
    stream: bool
    explain: bool
    stats: bool
    as_json: bool

    async def answered(self, ask: "Oracle", manner: "Manner") -> "Generation":
        """Answer the prompt, print the answer, and return it."""
        stream, stats = self.stream, self.stats
        async with aclosing(ask(self.text, manner)) as answer:
            if stream:
                await streamed(answer, self.as_json, stats)
            done = await answer.all()
        if not self.as_json:
            if not stream:
                say(done.prompt + done.text)
            show_more(answer, done, explain=self.explain, stats=stats)
        await settled(ask.visiting)
        if self.as_json:
            found = {"stopped": done.stopped} if stream else present.generation_json(done)
            found |= present.stats_json(answer) if stats and not stream else {}
            say_json(found | lies_json(ask.visiting))
        return done


async def _by_gateway(
    where: "Whereabouts", how: _How, manners: "list[Manner]", joined: Callable[[], None]
) -> "list[Generation]":
    """Answer by a gateway until all are answered, or it fails; `manners` keeps the unanswered."""
    ask = oracle_at(where)
    found: list[Generation] = []
    joined()
    with suppress(Away):
        while manners:
            found.append(await how.answered(ask, manners[0]))
            del manners[0]
    return found


async def streamed(answer: "Answer", as_json: bool, stats: bool = False) -> None:
    """Print an answer as it comes; as JSON, a line about the prompt, then one for each token."""
    first = await anext(answer, None)
    if as_json:
        say_json({"completion": answer.completion, "unknown": answer.unknown})
    else:
        say(answer.prompt + answer.completion, end="")
    token = first
    while token is not None:
        if as_json:
            cost = cost_json(answer.costs[-1]) if stats else {}
            say_json(token_json(token) | cost)
        else:
            say(token.text, end="")
        token = await anext(answer, None)
    if not as_json:
        say("")


def show_more(answer: "Answer", done: "Generation", *, explain: bool, stats: bool) -> None:
    """Print what each token rests on (`explain`) and its cost (`stats`)."""
    if explain:
        for line in present.explained_lines(done):
            say(line)
    if stats and answer.begun is not None:
        for line in present.costs_lines(done.tokens, answer.begun, answer.costs):
            say(line)


def evaluate(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A UTF-8 text; - reads standard input.")
    ],
    join: Join,
    seed_tokens: SeedTokens = None,
    timing: Timing = TimingName.AUTO,
    feed: Feed = FeedName.TRUE,
    graded_strengths: GradedStrengths = False,
    graded_activations: GradedActivations = False,
    readout: Readout = None,
    bits: Bits = False,
    verify: Verify = False,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Measure how many tokens of a text a swarm predicts right (top-1, after the seed).

    The predictions are computed on this machine, with rows of the storage peers.
    """
    from giaann_p2p.solo.source import check

    check(file)

    async def scored(joined: Callable[[], None]) -> "Score":
        from giaann_p2p.cli.visiting import visiting
        from giaann_p2p.client.scoring import scored

        async with visiting(join, share_of(verify)) as session:
            joined()
            arrived(session)
            with progress_bar(f"predicting {file.name}") as bar:
                score = await scored(
                    session,
                    file,
                    seed_tokens=seed_tokens,
                    timing=timing,
                    feed=feed,
                    variant=variant_of(graded_strengths, graded_activations),
                    readout=readout,
                    bits=bits,
                    device=device,
                    progress=lambda score, share: bar.update(share, f"{score.accuracy:.4f} right"),
                )
            if not as_json:
                say(present.score_line(score))
            await settled(session)
            if as_json:
                how = {"timing": timing, "feed": feed}
                say_json(present.score_json(score) | how | lies_json(session))
            complain_of(session)
            return score

    with joining(as_json) as joined:
        score = asyncio.run(scored(joined))
    if not score.predicted:
        complain(f"{readable(str(file))} has nothing to predict: {present.NOTHING_TO_LEARN}")
        raise typer.Exit(FAILED)
