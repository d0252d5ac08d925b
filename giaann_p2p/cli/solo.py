"""`giaann solo`: the single-machine brain."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from giaann_p2p.cli.terminal import (
    EXIT_CODES,
    INTERRUPTED,
    NOTHING,
    Interrupt,
    complain,
    progress_bar,
    say,
    say_json,
)

if TYPE_CHECKING:
    from giaann_p2p import Answer, Beam, Brain, Token, Trained, Variant

app = typer.Typer(
    help="A brain on this machine alone: train it, prompt it, look into it.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
)


class TimingName(StrEnum):
    """Names of timings, as on the command line."""

    AUTO = "auto"
    EXACT = "exact"
    SEQ = "seq"
    NONE = "none"
    BIASED = "biased"


class FeedName(StrEnum):
    """What is fed after each prediction, as on the command line."""

    TRUE = "true"
    OWN = "own"


class Format(StrEnum):
    """Formats of an export."""

    TSV = "tsv"
    JSONL = "jsonl"


Db = Annotated[
    Path,
    typer.Option("--db", envvar="GIAANN_DB", metavar="DIR", help="The brain's directory."),
]
Json = Annotated[bool, typer.Option("--json", help="Write JSON, for machines.")]
Device = Annotated[
    str,
    typer.Option(metavar="NAME", help="Torch device: auto (CUDA where there is one), cpu, cuda:0."),
]
Timing = Annotated[
    TimingName,
    typer.Option(
        help="How strictly memory must match: exact (word for word), seq (in order), none, biased; "
        "auto takes the strictest that has an answer."
    ),
]
GradedStrengths = Annotated[
    bool, typer.Option("--graded-strengths", help="Stronger connections pass on more.")
]
GradedActivations = Annotated[
    bool, typer.Option("--graded-activations", help="Segments add up what reaches them.")
]


@app.command()
def train(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="UTF-8 texts; - reads standard input.")
    ],
    db: Db,
    epochs: Annotated[int, typer.Option(min=1, help="Learn each text so many times.")] = 1,
    workers: Annotated[
        int,
        typer.Option(min=0, help="Parsing processes; 0: one for a small text, else one a core."),
    ] = 0,
    seed_tokens: Annotated[
        int | None,
        typer.Option(metavar="S", help="Size of the segments, for a new brain. [default: 12]"),
    ] = None,
    device: Device = "auto",
    json_output: Json = False,
) -> None:
    """Learn texts: a known one is not learned again, an interrupted one is taken up again."""
    from giaann_p2p import Brain, ModelSpec

    spec = None if seed_tokens is None else ModelSpec(seed_tokens=seed_tokens)
    interrupted = False
    with Brain.open(db, spec, device) as brain, Interrupt() as interrupt:
        for file in files:
            with progress_bar(f"learning {file.name}") as bar:

                def show(report: "Trained", read: int) -> None:
                    bar.update(read, report.size, f"{report.sentences:,} sentences")

                reports = brain.train(
                    file, epochs=epochs, workers=workers, progress=show, should_stop=interrupt
                )
            for report in reports:
                say_json(_trained_json(report)) if json_output else say(_trained_line(report))
            interrupted = reports[-1].interrupted
            if interrupted:
                break
    if interrupted:
        complain("interrupted; what was learned is saved: the same command goes on from there")
        raise typer.Exit(INTERRUPTED)


@app.command()
def prompt(
    text: Annotated[str, typer.Argument(help="Words to go on with; - reads standard input.")],
    db: Db,
    max_tokens: Annotated[int, typer.Option(min=1, help="Stop after so many tokens.")] = 80,
    timing: Timing = TimingName.AUTO,
    beam: Annotated[
        str | None,
        typer.Option(
            metavar="WIDTHxDEPTH", help="Look ahead: 3x4 follows the 3 best ways 4 tokens."
        ),
    ] = None,
    stream: Annotated[bool, typer.Option("--stream", help="Write each word as it comes.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what speaks for each token.")
    ] = False,
    graded_strengths: GradedStrengths = False,
    graded_activations: GradedActivations = False,
    device: Device = "auto",
    json_output: Json = False,
) -> None:
    """Go on from a prompt: the text, then what comes to mind."""
    if text == "-":
        text = sys.stdin.read().strip()
    with _reading(db, device) as brain:
        answer = brain.stream(
            text,
            max_tokens=max_tokens,
            timing=timing,
            beam=_beam(beam),
            variant=_variant(graded_strengths, graded_activations),
        )
        tokens = _stream(answer, json_output) if stream else list(answer)
    if not stream:
        _say_answer(answer, tokens, json_output)
    if explain and not json_output:
        for token in tokens:
            say(_evidence(token))
    if not tokens and not answer.completion:
        complain(f"nothing comes to mind (timing {timing.value})")
        raise typer.Exit(NOTHING)


@app.command("eval")
def evaluate(
    file: Annotated[Path, typer.Argument(help="A UTF-8 text; - reads standard input.")],
    db: Db,
    seed_tokens: Annotated[
        int | None,
        typer.Option(min=1, metavar="S", help="Seed of each sentence. [default: the model's]"),
    ] = None,
    timing: Timing = TimingName.AUTO,
    feed: Annotated[
        FeedName, typer.Option(help="After each prediction take in the true token or its own.")
    ] = FeedName.TRUE,
    graded_strengths: GradedStrengths = False,
    graded_activations: GradedActivations = False,
    device: Device = "auto",
    json_output: Json = False,
) -> None:
    """Measure how many tokens of a text are predicted right (top-1, after the seed)."""
    with _reading(db, device) as brain, progress_bar(f"predicting {file.name}") as bar:
        score = brain.evaluate(
            file,
            seed_tokens=seed_tokens,
            timing=timing,
            feed=feed,
            variant=_variant(graded_strengths, graded_activations),
            progress=lambda s: bar.update(s.sentences, None, f"{s.accuracy:.4f}"),
        )
    if json_output:
        derived = {
            "accuracy": score.accuracy,
            "neuron_accuracy": score.neuron_accuracy,
            "tokens_per_second": score.tokens_per_second,
        }
        say_json({**vars(score), **derived, "timing": timing, "feed": feed})
        return
    say(
        f"accuracy {score.accuracy:.4f} ({score.right_words:,} of {score.predicted:,} tokens, "
        f"{score.silent:,} without candidate, {score.unreached:,} unreached) on "
        f"{score.sentences:,} sentences, timing {timing}, feed {feed}; "
        f"{score.tokens_per_second:,.0f} tokens/s"
    )


@app.command()
def recall(
    file: Annotated[Path, typer.Argument(help="A UTF-8 text; - reads standard input.")],
    db: Db,
    words: Annotated[
        int | None,
        typer.Option(min=1, help="Words given of each sentence. [default: the model's S]"),
    ] = None,
    timing: Timing = TimingName.AUTO,
    missed: Annotated[
        bool, typer.Option("--missed", help="Show the sentences that were not recalled.")
    ] = False,
    device: Device = "auto",
    json_output: Json = False,
) -> None:
    """Give the first words of each sentence as a prompt; count the sentences that are completed."""
    with _reading(db, device) as brain, progress_bar(f"recalling {file.name}") as bar:
        result = brain.recall(
            file,
            words=words,
            timing=timing,
            progress=lambda r: bar.update(r.sentences, None, f"{r.share:.4f}"),
        )
    if json_output:
        say_json({**vars(result), "share": result.share, "timing": timing})
        return
    say(f"recalled {result.share:.4f} ({result.recalled:,} of {result.sentences:,} sentences)")
    if missed:
        for begun, rest, said in result.missed:
            say(f"  {begun} ...\n    true:{rest}\n    said:{said}")


@app.command()
def export(
    db: Db,
    format_: Annotated[
        Format,
        typer.Option(
            "--format",
            help="tsv: source concept, source feature, target concept, target feature, branch, "
            "segment, strength; a prime feature is *, the word * is \\*. jsonl: the same by name.",
        ),
    ] = Format.TSV,
) -> None:
    """Write every connection to standard output."""
    from giaann_p2p.solo.export import json_line, tsv_line

    line = tsv_line if format_ is Format.TSV else json_line
    with _reading(db, "cpu") as brain:
        for connection in brain.connections():
            sys.stdout.write(line(connection) + "\n")


@app.command()
def info(db: Db, json_output: Json = False) -> None:
    """Tell what a brain holds."""
    with _reading(db, "cpu") as brain:
        found = brain.info()
    if json_output:
        say_json(found)
        return
    spec = found.spec
    say(f"brain      {db} ({found.file_bytes:,} bytes)")
    say(f"knows      {found.columns:,} columns, {found.neurons:,} neurons, {found.words:,} words")
    say(f"           {found.connections:,} connections from {found.occurrences:,} tokens")
    say(f"digest     {found.digest}")
    say(
        f"model      S={spec.seed_tokens}, {spec.column_segments} column and "
        f"{spec.feature_segments} feature segments, {spec.branches} branches"
    )
    say(f"           pipeline {spec.pipeline}, lexicon {spec.lexicon}")
    for name, chunks in found.texts.items():
        say(f"text       {name} ({chunks:,} chunks)")


def _reading(db: Path, device: str) -> "Brain":
    from giaann_p2p import Brain

    return Brain.open(db, device=device, readonly=True)


def _variant(strengths: bool, activations: bool) -> "Variant":
    from giaann_p2p import Variant

    return Variant(graded_strengths=strengths, graded_activations=activations)


def _beam(text: str | None) -> "Beam | None":
    if text is None:
        return None
    from giaann_p2p import Beam

    width, _, depth = text.partition("x")
    if not (width.isdecimal() and depth.isdecimal() and int(width) and int(depth)):
        raise typer.BadParameter(f"{text!r} is not WIDTHxDEPTH, as 3x4", param_hint="--beam")
    return Beam(width=int(width), depth=int(depth))


def _stream(answer: "Answer", as_json: bool) -> "list[Token]":
    from giaann_p2p.model.render import Renderer

    tokens = []
    renderer = Renderer(answer.prompt + answer.completion)
    if not as_json:
        say(answer.prompt + answer.completion, end="")
    for token in answer:
        tokens.append(token)
        say_json(_token_json(token)) if as_json else say(renderer.append(token.word), end="")
    if not as_json:
        say("")
    return tokens


def _say_answer(answer: "Answer", tokens: "list[Token]", as_json: bool) -> None:
    from giaann_p2p import Generation

    done = Generation(answer.prompt, tokens, answer.completion, answer.stopped or "end")
    if as_json:
        listed = [_token_json(token) for token in tokens]
        say_json(
            {"prompt": done.prompt, "text": done.text, "tokens": listed, "stopped": done.stopped}
        )
    else:
        say(done.prompt + done.text)


def _token_json(token: "Token") -> dict[str, Any]:
    return {
        "word": token.word,
        "concept": token.name.concept,
        "feature": token.name.feature,
        "timing": token.timing,
        "score": round(token.score, 6),
        "candidates": token.candidates,
    }


def _evidence(token: "Token") -> str:
    where = f"{token.name.concept}/{token.name.feature or '*'}"
    return (
        f"  {token.word:<24} {token.timing:<6} score {token.score:7.3f}  "
        f"of {token.candidates:>4} candidates  {where}"
    )


def _trained_json(report: "Trained") -> dict[str, Any]:
    skips = {
        reason.value: {"count": count, "first_line": report.skips.first_lines[reason]}
        for reason, count in report.skips.counts.items()
    }
    return {**vars(report), "skips": skips}


def _trained_line(report: "Trained") -> str:
    if report.known:
        return (
            f"{report.name}: known already ({report.chunks_known:,} chunks); --epochs learns again"
        )
    skips = ", ".join(
        f"{count:,} {reason} (first on line {report.skips.first_lines[reason]})"
        for reason, count in report.skips.counts.items()
    )
    rate = report.sentences / report.seconds if report.seconds else 0.0
    return (
        f"{report.name}: learned {report.sequences:,} of {report.sentences:,} sentences"
        + (f", skipped {skips}" if skips else "")
        + f"; {rate:,.0f} sentences/s"
        + (" (interrupted)" if report.interrupted else "")
    )
