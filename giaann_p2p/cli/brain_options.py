"""Options of all commands for a brain on this machine."""

from pathlib import Path
from typing import Annotated

import typer


def directory(name: str) -> Path:
    """Parse the value of an option that names a directory."""
    if not name:
        raise typer.BadParameter("a directory's name cannot be empty")
    return Path(name)


Db = Annotated[
    Path,
    typer.Option(
        "--db", envvar="GIAANN_DB", metavar="DIR", parser=directory, help="The brain's directory."
    ),
]
NewDb = Annotated[
    Path,
    typer.Option(
        "--db",
        envvar="GIAANN_DB",
        metavar="DIR",
        parser=directory,
        help="The brain's directory; created if it is missing.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Write JSON, for programs.")]
