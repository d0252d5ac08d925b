"""`giaann train`: has a swarm learn texts."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from giaann_p2p.cli import present
from giaann_p2p.cli.arrival import arrived
from giaann_p2p.cli.learning import Learning
from giaann_p2p.cli.link_option import Join
from giaann_p2p.cli.wrong_values import a_number
from giaann_p2p.client.plain import taught_json
from giaann_p2p.errors import TextError
from giaann_p2p.solo.source import check
from giaann_p2p.terminal import (
    Interrupt,
    complain,
    joining,
    progress_bar,
    say,
    say_json,
)

if TYPE_CHECKING:
    from giaann_p2p.client.trained import TrainProgress, TrainReport
    from giaann_p2p.client.training import Trainer, TrainOptions


class PolicyName(StrEnum):
    """The values of `--policy`: how the next chunk to learn is chosen."""

    OVERLAP = "overlap"
    RANDOM = "random"


Policy = Annotated[
    PolicyName,
    typer.Option(
        help="How to choose the next chunk: least overlap with those in flight, or at random."
    ),
]
Batch = Annotated[
    int,
    typer.Option(
        min=1,
        max=4096,
        metavar="B",
        help="Maximum chunks (64 sentences or texts) in flight at all compute peers together.",
    ),
]
Redundancy = Annotated[
    int,
    typer.Option(
        min=1,
        max=8,
        metavar="N",
        help="Compute peers that must learn each chunk with the same result; more if the "
        "swarm requires more.",
    ),
]
Check = Annotated[
    float,
    typer.Option(
        min=0,
        max=1,
        callback=a_number,
        metavar="SHARE",
        help="Share of the chunks that a second peer learns, too, to find liars; peers without "
        "a history are checked more often. 0 checks none.",
    ),
]


def train(
    texts: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE|DIR|-...",
            help="UTF-8 texts; all *.txt files of a directory; - reads standard input.",
        ),
    ],
    join: Join,
    epochs: Annotated[int, typer.Option(min=1, help="Learn each text this many times.")] = 1,
    policy: Policy = PolicyName.OVERLAP,
    batch: Batch = 64,
    redundancy: Redundancy = 1,
    check: Check = 0.02,
    patience: Annotated[
        float,
        typer.Option(
            min=0,
            callback=a_number,
            metavar="SECONDS",
            help="How long to wait for missing peers before giving up.",
        ),
    ] = 60.0,
    json_output: Annotated[bool, typer.Option("--json", help="Write JSON, for programs.")] = False,
) -> None:
    """Have a swarm learn texts; what it knows is not learned again.

    You can stop at any time; the same command, run by anybody, continues from there. The exit code
    is 0 if everything is learned.
    """
    learning: Learning[TrainReport] = Learning(
        texts, _files, lambda report: _tell(report, json_output)
    )
    from giaann_p2p.client.training import TrainOptions

    manner = TrainOptions(
        epochs=epochs,
        policy=policy.value,
        batch=batch,
        redundancy=redundancy,
        check=check,
        patience=patience,
    )
    try:
        with Interrupt() as interrupt:
            asyncio.run(_trained(join, learning, manner, interrupt, json_output))
    except KeyboardInterrupt:
        learning.cut_short()
    learning.end(lambda report: report.complete)


def _files(text: Path) -> list[Path]:
    """Return the files that an argument names: a file, or all *.txt files in a directory."""
    if str(text) == "-" or not text.is_dir():
        check(text)
        return [text]
    found = sorted(file for file in text.rglob("*.txt") if file.is_file())
    if not found:
        raise TextError(f"{text} contains no *.txt file")
    return found


async def _trained(
    join: str,
    learning: "Learning[TrainReport]",
    manner: "TrainOptions",
    interrupt: Interrupt,
    as_json: bool,
) -> None:
    """Have the swarm learn all texts in turn, and report each as soon as it is learned."""
    async with AsyncExitStack() as held:
        with joining(as_json):
            from giaann_p2p.client.session import visit
            from giaann_p2p.client.training import Trainer
            from giaann_p2p.swarm.wire.link import Link

            visiting = await held.enter_async_context(visit(Link.read(join)))
            await visiting.join_dht()  # commits are counted over all owners
        losses, trainer = arrived(visiting), Trainer(visiting)
        try:
            for file in learning:
                with learning.attempt() as reports:
                    found = await _learned(trainer, file, manner, interrupt, learning.show)
                    reports.extend(found)
                losses.look()
        finally:
            await trainer.close()


async def _learned(
    trainer: "Trainer",
    file: Path,
    manner: "TrainOptions",
    interrupt: Interrupt,
    note: "Callable[[TrainReport], None]",
) -> "list[TrainReport]":
    told: set[str] = set()
    with progress_bar(f"learning {file.name}") as bar:

        def show(report: "TrainReport", standing: "TrainProgress") -> None:
            note(report)
            bar.update(standing.share, present.standing_line(report, standing))
            if standing.lacking and standing.lacking not in told:
                told.add(standing.lacking)
                complain(f"waiting for {standing.lacking}: {standing.remedy}")

        return await trainer.train(file, manner, watch=show, should_stop=interrupt)


def _tell(report: "TrainReport", as_json: bool) -> None:
    if as_json:
        say_json(taught_json(report))
        return
    say(present.taught_line(report))
    for lines in (present.liar_lines, present.unbrought_lines, present.given_up_lines):
        for line in lines(report):
            complain(line)
