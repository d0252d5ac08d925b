"""Options of all commands for a brain on this machine."""

from pathlib import Path
from typing import Annotated

import typer


def _directory(name: str) -> Path:
    if not name:
        raise typer.BadParameter("a directory's name cannot be empty")
    return Path(name)


Db = Annotated[
    Path,
    typer.Option(
        "--db", envvar="GIAANN_DB", metavar="DIR", parser=_directory, help="The brain's directory."
    ),
]
NewDb = Annotated[
    Path,
    typer.Option(
        "--db",
        envvar="GIAANN_DB",
        metavar="DIR",
        parser=_directory,
        help="The brain's directory; created if it is missing.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Write JSON, for programs.")]
