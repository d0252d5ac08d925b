"""`giaann train`: have texts learned by a swarm."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from giaann_p2p.cli import present
from giaann_p2p.cli.health import Join
from giaann_p2p.terminal import (
    FAILED,
    INTERRUPTED,
    Interrupt,
    complain,
    joining,
    progress_bar,
    say,
    say_json,
)

if TYPE_CHECKING:
    from giaann_p2p.client.trained import Standing, Taught
    from giaann_p2p.client.training import Manner, Trainer


class PolicyName(StrEnum):
    """Names of policies, as on the command line."""

    OVERLAP = "overlap"
    RANDOM = "random"


def train(
    texts: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE|DIR|-...",
            help="UTF-8 texts; all *.txt files of a directory; - reads standard input.",
        ),
    ],
    join: Join,
    epochs: Annotated[int, typer.Option(min=1, help="Learn each text so many times.")] = 1,
    policy: Annotated[
        PolicyName,
        typer.Option(
            help="What is next: what has least in common with what is being learned, or any."
        ),
    ] = PolicyName.OVERLAP,
    batch: Annotated[
        int,
        typer.Option(
            min=1,
            max=4096,
            metavar="B",
            help="Chunks of 64 sentences in flight at most, of all compute peers together.",
        ),
    ] = 64,
    redundancy: Annotated[
        int,
        typer.Option(
            min=1,
            max=8,
            metavar="N",
            help="Compute peers that learn each chunk, and have to come to the same; more if the "
            "swarm wants more.",
        ),
    ] = 1,
    check: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            metavar="SHARE",
            help="Share of the chunks that a second peer learns, too, to find out who lies; of "
            "peers that are new it is more. 0 checks nobody.",
        ),
    ] = 0.02,
    patience: Annotated[
        float,
        typer.Option(
            min=0, metavar="SECONDS", help="How long to wait for peers if there are none."
        ),
    ] = 60.0,
    json_output: Annotated[bool, typer.Option("--json", help="Write JSON, for machines.")] = False,
) -> None:
    """Have texts learned by a swarm: what it knows is not learned again.

    It may be stopped at any time, and goes on where it was when it is given again, by anybody. The
    exit code is 0 if all is learned.
    """
    from giaann_p2p.client.training import Manner

    files = list(_files(texts))
    manner = Manner(
        epochs=epochs,
        policy=policy.value,
        batch=batch,
        redundancy=redundancy,
        check=check,
        patience=patience,
    )
    with Interrupt() as interrupt:
        reports = asyncio.run(_trained(join, files, manner, interrupt, json_output))
    if reports and reports[-1].interrupted:
        complain("interrupted; what was learned is kept: the same command goes on from there")
        raise typer.Exit(INTERRUPTED)
    if not all(report.complete for report in reports):
        raise typer.Exit(FAILED)


def _files(texts: list[Path]) -> Iterator[Path]:
    """Return the texts, those of directories in sorted order, all of which can be read."""
    from giaann_p2p.errors import TextError
    from giaann_p2p.solo.corpus import check

    for text in texts:
        found = [text]
        if str(text) != "-" and text.is_dir():
            found = sorted(file for file in text.rglob("*.txt") if file.is_file())
            if not found:
                raise TextError(f"{text} has no *.txt file in it")
        for file in found:
            check(file)
            yield file


async def _trained(
    join: str, files: list[Path], manner: "Manner", interrupt: Interrupt, as_json: bool
) -> "list[Taught]":
    """Have all learned, and tell of each text as soon as it is."""
    reports: list[Taught] = []
    async with AsyncExitStack() as held:
        with joining(as_json):
            from giaann_p2p.client.training import Trainer
            from giaann_p2p.client.visit import visit
            from giaann_p2p.swarm.link import Link

            visiting = await held.enter_async_context(visit(Link.read(join)))
        trainer = Trainer(visiting)
        try:
            for file in files:
                found = await _learned(trainer, file, manner, interrupt)
                for report in found:
                    _tell(report, as_json)
                reports += found
                if found[-1].interrupted:
                    break
        finally:
            await trainer.close()
    return reports


async def _learned(
    trainer: "Trainer", file: Path, manner: "Manner", interrupt: Interrupt
) -> "list[Taught]":
    told: set[str] = set()
    with progress_bar(f"learning {file.name}") as bar:

        def show(report: "Taught", standing: "Standing") -> None:
            bar.update(standing.share, present.standing_line(report, standing))
            if standing.lacking and standing.lacking not in told:
                told.add(standing.lacking)
                complain(f"waiting for {standing.lacking}")

        return await trainer.train(file, manner, watch=show, should_stop=interrupt)


def _tell(report: "Taught", as_json: bool) -> None:
    if as_json:
        say_json(present.taught_json(report))
        return
    say(present.taught_line(report))
    for lines in (present.liar_lines, present.unbrought_lines, present.given_up_lines):
        for line in lines(report):
            complain(line)
