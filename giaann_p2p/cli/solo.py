"""`giaann solo`: the commands for a brain on a single machine."""

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from giaann_p2p.cli import present
from giaann_p2p.cli.brain_options import Db, Json
from giaann_p2p.cli.giaannpy import export_database, import_database
from giaann_p2p.cli.learning import Learning
from giaann_p2p.cli.manner import (
    Answers,
    BeamSize,
    Bits,
    ColumnSegments,
    Device,
    Explain,
    Feed,
    FeedName,
    GradedActivations,
    GradedStrengths,
    MaxTokens,
    Penalty,
    Profile,
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
    beam_of,
    samplings_of,
    text_of,
    variant_of,
)
from giaann_p2p.cli.solo_column import column
from giaann_p2p.client.plain import token_json, trained_json
from giaann_p2p.exit_codes import EXPLAINED, FAILED, NOTHING
from giaann_p2p.solo.directory import existing
from giaann_p2p.solo.source import check
from giaann_p2p.terminal import (
    Interrupt,
    complain,
    flush,
    progress_bar,
    readable,
    say,
    say_json,
    write_utf_8,
)

if TYPE_CHECKING:
    from giaann_p2p import Answer, Brain, Generation, ModelSpec, Trained

app = typer.Typer(
    help="A brain on this machine alone: train it, prompt it, inspect it.",
    epilog=EXPLAINED,
    no_args_is_help=True,
)


class Format(StrEnum):
    """The values of `--format`: the formats of an export."""

    TSV = "tsv"
    JSONL = "jsonl"
    GIAANNPY = "giaannpy"


TextFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="A UTF-8 text; - reads standard input.")
]


@app.command()
def train(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="UTF-8 texts; - reads standard input.")
    ],
    db: Db,
    epochs: Annotated[int, typer.Option(min=1, help="Learn each text this many times.")] = 1,
    workers: Annotated[
        int,
        typer.Option(min=0, help="Parsing processes; 0: one for a small text, else one per core."),
    ] = 0,
    seed_tokens: Annotated[
        int | None,
        typer.Option(
            metavar="S",
            help="Minimum tokens of a text for a new brain, and tokens of each that `eval` gives."
            " \\[default: 8, with words 12]",
        ),
    ] = None,
    profile: Annotated[
        Profile | None,
        typer.Option(help="How a new brain reads: words, or subwords. \\[default: subwords]"),
    ] = None,
    column_segments: ColumnSegments = None,
    device: Device = "auto",
    json_output: Json = False,
) -> None:
    """Learn texts; known ones are not learned again, interrupted ones are continued."""
    spec = _spec(seed_tokens, profile, column_segments)

    def tell(report: "Trained") -> None:
        as_json = trained_json
        say_json(as_json(report)) if json_output else say(present.trained_line(report))

    learning = Learning(files, _checked, tell)
    try:
        with Interrupt() as interrupt:
            from giaann_p2p import Brain

            with Brain.open(db, spec, device) as brain:
                learn = partial(brain.train, epochs=epochs, workers=workers, should_stop=interrupt)
                for file in learning:
                    with learning.attempt() as reports:
                        reports.extend(_learned(learn, file, learning.show))
    except KeyboardInterrupt:
        learning.cut_short()
    learning.end()


@app.command()
def prompt(
    text: Text,
    db: Db,
    max_tokens: MaxTokens = 80,
    timing: Timing = TimingName.AUTO,
    beam: BeamSize = None,
    stream: Stream = False,
    explain: Explain = False,
    graded_strengths: GradedStrengths = False,
    graded_activations: GradedActivations = False,
    temperature: Temperature = 0.0,
    top_k: TopK = 0,
    top_p: TopP = 1.0,
    seed: SeedNumber = 0,
    repetition_penalty: Penalty = 1.0,
    stop: Stop = None,
    answers: Answers = 1,
    device: Device = "auto",
    json_output: Json = False,
) -> None:
    """Continue a prompt, and print both."""
    text, looks_ahead = text_of(text), beam_of(beam)
    drawing = samplings_of(temperature, top_k, top_p, seed, repetition_penalty, stop, answers)
    found: list[Generation] = []
    with _reading(db, device) as brain:
        for sampling in drawing:
            answer = brain.stream(
                text,
                max_tokens=max_tokens,
                timing=timing,
                beam=looks_ahead,
                variant=variant_of(graded_strengths, graded_activations),
                sampling=sampling,
            )
            if stream:
                _stream(answer, json_output)
            found.append(done := answer.all())
            if not stream and json_output:
                say_json(present.generation_json(done))
            elif not stream:
                say(done.prompt + done.text)
            if explain and not json_output:
                for line in present.explained_lines(done):
                    say(line)
    if not any(one.text for one in found):
        complain(present.nothing_line(found[-1], timing.value, stop))
        raise typer.Exit(NOTHING)


@app.command("eval")
def evaluate(
    file: TextFile,
    db: Db,
    seed_tokens: SeedTokens = None,
    timing: Timing = TimingName.AUTO,
    feed: Feed = FeedName.TRUE,
    graded_strengths: GradedStrengths = False,
    graded_activations: GradedActivations = False,
    readout: Readout = None,
    bits: Bits = False,
    device: Device = "auto",
    json_output: Json = False,
) -> None:
    """Measure how many tokens of a text are predicted right (top-1, after the seed)."""
    check(file)
    with _reading(db, device) as brain, progress_bar(f"predicting {file.name}") as bar:
        score = brain.evaluate(
            file,
            seed_tokens=seed_tokens,
            timing=timing,
            feed=feed,
            variant=variant_of(graded_strengths, graded_activations),
            readout=readout,
            bits=bits,
            progress=lambda score, share: bar.update(share, f"{score.accuracy:.4f} right"),
        )
    if json_output:
        say_json({**present.score_json(score), "timing": timing, "feed": feed})
    else:
        say(present.score_line(score))
    if not score.predicted:
        complain(f"{readable(str(file))} has nothing to predict: {present.NOTHING_TO_LEARN}")
        raise typer.Exit(FAILED)


@app.command()
def recall(
    file: TextFile,
    db: Db,
    words: Annotated[
        int | None,
        typer.Option(min=1, help="Words given of each sentence. \\[default: the model's S]"),
    ] = None,
    timing: Timing = TimingName.AUTO,
    missed: Annotated[
        bool, typer.Option("--missed", help="Show the sentences that were not recalled.")
    ] = False,
    device: Device = "auto",
    json_output: Json = False,
) -> None:
    """Prompt with the first words of each sentence; count the sentences completed correctly."""
    check(file)
    with _reading(db, device) as brain, progress_bar(f"recalling {file.name}") as bar:
        result = brain.recall(
            file,
            words=words,
            timing=timing,
            progress=lambda found, share: bar.update(share, f"{found.share:.4f} recalled"),
        )
    if json_output:
        say_json(present.recalled_json(result))
    else:
        say(present.recalled_lines(result, missed))
    if not result.sentences:
        complain(f"{readable(str(file))} has nothing to recall: {present.NOTHING_TO_LEARN}")
        raise typer.Exit(FAILED)


@app.command()
def export(
    db: Db,
    format_: Annotated[
        Format,
        typer.Option(
            "--format",
            help="tsv: source concept, source feature, target concept, target feature, branch, "
            "segment, strength; a prime feature is *, the word * is \\*. jsonl: the same by name. "
            "giaannpy: a database of GIAANNpy, into the folder --to.",
        ),
    ] = Format.TSV,
    header: Annotated[
        bool, typer.Option("--header", help="Begin with a line of field names (tsv).")
    ] = False,
    to: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="A new folder (giaannpy).")
    ] = None,
) -> None:
    """Write every connection to standard output, or a database of GIAANNpy."""
    if (to is not None) is not (format_ is Format.GIAANNPY):
        raise typer.BadParameter("--format giaannpy and --to FOLDER need each other")
    if header and format_ is not Format.TSV:
        raise typer.BadParameter(
            "--header needs --format tsv, because JSON lines name their fields"
        )
    if to is not None:
        export_database(db, to)
        return
    existing(db)
    from giaann_p2p.solo.export import TSV_HEADER, tsv_line

    write_utf_8()
    if header:
        say(TSV_HEADER, flush=False)
    with _reading(db, "cpu") as brain:
        for connection in brain.connections():
            if format_ is Format.TSV:
                say(tsv_line(connection), flush=False)
            else:
                say_json(connection, flush=False)
    flush()


app.command()(column)
app.command("import")(import_database)


@app.command()
def fsck(db: Db, json_output: Json = False) -> None:
    """Check every checksum and digest of a brain's files; report each fault and its place."""
    existing(db)
    from giaann_p2p import Brain

    found = Brain.check(db)
    if json_output:
        say_json(found)
    else:
        for line in present.checked_lines(found):
            say(line)
    if found.problems:
        raise typer.Exit(FAILED)


@app.command()
def compact(db: Db, json_output: Json = False) -> None:
    """Rewrite what was learned as one snapshot, and remove the log."""
    existing(db)
    from giaann_p2p import Brain

    with Brain.open(db, device="cpu", create=False) as brain:
        before, after = brain.compact()
    if json_output:
        say_json({"bytes_before": before, "bytes_after": after})
    else:
        say(f"{readable(str(db))}: {before:,} bytes before, {after:,} bytes now")


@app.command()
def info(db: Db, json_output: Json = False) -> None:
    """Show a brain's size, digest, model and texts."""
    with _reading(db, "cpu") as brain:
        found = brain.info()
    say_json(found) if json_output else say(present.info_lines(found, str(db)))


def _learned(
    learn: "Callable[..., list[Trained]]", file: Path, note: "Callable[[Trained], None]"
) -> "list[Trained]":
    with progress_bar(f"learning {file.name}") as bar:

        def show(report: "Trained", share: float) -> None:
            note(report)
            bar.update(share, f"{report.sentences:,} sentences")

        return learn(file, progress=show)


def _checked(file: Path) -> list[Path]:
    check(file)
    return [file]


def _reading(db: Path, device: str) -> "Brain":
    existing(db)
    from giaann_p2p import Brain

    return Brain.open(db, device=device, readonly=True)


def _spec(
    seed_tokens: int | None, profile: Profile | None, column_segments: int | None
) -> "ModelSpec | None":
    if seed_tokens is None and profile is None and column_segments is None:
        return None
    from giaann_p2p import SpecError
    from giaann_p2p.model.usual import new_spec

    try:
        return new_spec(profile, seed_tokens, column_segments)
    except SpecError as error:
        raise typer.BadParameter(str(error), param_hint="--seed-tokens") from None


def _stream(answer: "Answer", as_json: bool) -> None:
    """Print an answer as it comes; as JSON, a line each for the prompt, each token, and the end."""
    if as_json:
        say_json({"completion": answer.completion, "unknown": answer.unknown})
        for token in answer:
            say_json(token_json(token))
        say_json({"stopped": answer.stopped})
    else:
        say(answer.prompt + answer.completion, end="")
        for token in answer:
            say(token.text, end="")
        say("")
