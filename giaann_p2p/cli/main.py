"""The entry point of the command `giaann`: its sub-commands, and the exit codes of errors."""

import sys
from typing import Annotated

import typer

from bootstrap.command import bootstrap
from giaann_p2p import __version__
from giaann_p2p.cli import (
    chat,
    column,
    doctor,
    health,
    join,
    prompt,
    sim,
    solo,
    swarm,
    token,
    train,
)
from giaann_p2p.errors import GiaannError
from giaann_p2p.terminal import EXIT_CODES, INTERRUPTED, complain, ctrl_c_told
from peers.compute.command import compute
from peers.storage.command import storage

app = typer.Typer(
    help="GIAANN: a sparse language model of concept columns.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(solo.app, name="solo")
app.add_typer(swarm.app, name="swarm")
app.add_typer(token.app, name="token")
app.command("sim", epilog=EXIT_CODES)(sim.sim)
app.command("bootstrap", epilog=EXIT_CODES)(bootstrap)
app.command("storage", epilog=EXIT_CODES)(storage)
app.command("compute", epilog=EXIT_CODES)(compute)
app.command("train", epilog=EXIT_CODES)(train.train)
app.command("prompt", epilog=EXIT_CODES)(prompt.prompt)
app.command("chat", epilog=EXIT_CODES)(chat.chat)
app.command("eval", epilog=EXIT_CODES)(prompt.evaluate)
app.command("status", epilog=EXIT_CODES)(health.status)
app.command("fsck", epilog=EXIT_CODES)(health.fsck)
app.command("column", epilog=EXIT_CODES)(column.column)
app.command("join", epilog=EXIT_CODES)(join.join)
app.command("doctor", epilog=EXIT_CODES)(doctor.doctor)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"giaann {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; print errors as messages, and exit with their codes."""
    try:
        with ctrl_c_told():
            app(prog_name="giaann")
    except GiaannError as error:
        complain(str(error))
        sys.exit(error.exit_code)
    except KeyboardInterrupt:  # Ctrl-C before the command began; `ctrl_c_told` reported it
        sys.exit(INTERRUPTED)
