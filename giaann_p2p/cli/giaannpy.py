"""`giaann solo import`, and `export --format giaannpy`: databases of the public reference."""

from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from giaann_p2p.cli.brain_options import Db, Json
from giaann_p2p.solo.directory import existing
from giaann_p2p.store import home
from giaann_p2p.store.disk.files import DiskFiles
from giaann_p2p.terminal import complain, progress_bar, readable, say, say_json

if TYPE_CHECKING:
    from giaann_p2p import ModelSpec
    from giaann_p2p.solo.giaannpy.learning import Imported


class Model(StrEnum):
    """The values of `--model`: what a new brain keeps of a database."""

    ALL = "all"
    REFERENCE = "reference"
    RECOMMENDED = "recommended"


def import_database(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="A database of GIAANNpy: the folder with observedColumns in it."
        ),
    ],
    db: Db,
    model: Annotated[
        Model | None,
        typer.Option(
            help="What a new brain keeps. all: the whole database, and what prompts need; "
            "reference: the database alone, which answers no prompts; recommended: no connections "
            "by distance in columns, as train --profile subwords learns. \\[default: the model of "
            "the exported brain, else all]"
        ),
    ] = None,
    round_strengths: Annotated[
        bool, typer.Option("--round", help="Round strengths that are not whole counts.")
    ] = False,
    json_output: Json = False,
) -> None:
    """Add a GIAANNpy database to a brain, unless it was added before; run no code in it."""
    from giaann_p2p import Brain
    from giaann_p2p.solo.giaannpy.reading import read

    with ExitStack() as opened:
        spec, brain = _spec(folder, model), None
        if home.exists(DiskFiles(db)):
            named = spec if model else None
            brain = opened.enter_context(Brain.open(db, named, device="cpu"))
            spec = brain.spec
        with progress_bar(f"reading {readable(folder.name)}") as bar:
            database = read(
                folder,
                spec,
                round_strengths=round_strengths,
                progress=lambda share: bar.update(share, ""),
            )
        if brain is None:  # a database that cannot be read leaves no empty brain
            brain = opened.enter_context(Brain.open(db, spec, device="cpu"))
        report = brain.add_database(database)
    if json_output:
        say_json(report)
        return
    say(_line(report))
    for warning in _warnings(report):
        complain(warning)


def export_database(db: Path, target: Path) -> None:
    """Write a brain as a database of GIAANNpy into a new folder."""
    existing(db)
    from giaann_p2p import Brain

    with (
        Brain.open(db, device="cpu", readonly=True) as brain,
        progress_bar(f"writing {readable(target.name)}") as bar,
    ):
        done = brain.export_giaannpy(target, progress=lambda share: bar.update(share, ""))
    say(
        f"{readable(str(target))}: wrote {done.columns:,} columns, {done.neurons:,} neurons, "
        f"{done.connections:,} connections"
    )


def _spec(folder: Path, model: Model | None) -> "ModelSpec":
    """Return the model of a new brain."""
    from giaann_p2p.model.subwords.spec import (
        REFERENCE_COLUMN_SEGMENTS,
        reference_spec,
        subword_spec,
    )
    from giaann_p2p.solo.giaannpy.reading import spec_of

    exported = spec_of(folder)  # also rejects a folder that is not a database
    if model is Model.REFERENCE:
        return reference_spec()
    if model is Model.RECOMMENDED:
        return subword_spec()
    if model is None and exported is not None:
        return exported
    return subword_spec(column_segments=REFERENCE_COLUMN_SEGMENTS)


def _line(report: "Imported") -> str:
    if report.known:
        return f"{readable(report.name)}: known already; nothing was added"
    return (
        f"{readable(report.name)}: added {report.columns:,} columns, {report.neurons:,} neurons, "
        f"{report.connections:,} connections"
    )


def _warnings(report: "Imported") -> list[str]:
    """Return a line for each difference between the brain and the database."""
    if report.known:
        return []
    said = {
        f"{report.left_out:,} connections by distance in columns were left out, because the "
        "brain's model has none": report.left_out,
        f"{report.nearest:,} strengths by distance in columns are known to the nearest 2^-16 "
        "only": report.nearest,
        f"{report.rounded:,} strengths were not whole counts, and were rounded": report.rounded,
        "the database only flags delimiters, without counts: each flag counts "
        "once": report.flags_only,
        f"{report.unknown:,} files and folders are not part of a GIAANNpy database, and were "
        "ignored": report.unknown,
    }
    return [line for line, said_of in said.items() if said_of]
