"""The command line of `giaann`: its sub-commands, and the exit codes of errors."""

import os
import sys
from typing import Annotated

import typer

from giaann_p2p import __version__
from giaann_p2p.cli.lazy import lazy_group
from giaann_p2p.errors import GiaannError
from giaann_p2p.exit_codes import EXPLAINED, INTERRUPTED
from giaann_p2p.machine import ONE_THREAD
from giaann_p2p.terminal import complain, ctrl_c_told, open_streams

_COMMANDS = {
    "sim": "giaann_p2p.cli.sim:sim",
    "bootstrap": "bootstrap.command:bootstrap",
    "storage": "peers.storage.command:storage",
    "compute": "peers.compute.command:compute",
    "train": "giaann_p2p.cli.train:train",
    "prompt": "giaann_p2p.cli.prompt:prompt",
    "chat": "giaann_p2p.cli.chat:chat",
    "eval": "giaann_p2p.cli.prompt:evaluate",
    "status": "giaann_p2p.cli.status:status",
    "fsck": "giaann_p2p.cli.fsck:fsck",
    "column": "giaann_p2p.cli.column:column",
    "pull": "giaann_p2p.cli.pull:pull",
    "publish": "giaann_p2p.cli.publish:publish",
    "serve": "giaann_p2p.cli.serve:serve",
    "join": "giaann_p2p.cli.join:join",
    "doctor": "giaann_p2p.cli.doctor:doctor",
    "solo": "giaann_p2p.cli.solo:app",
    "swarm": "giaann_p2p.cli.swarm:app",
    "token": "giaann_p2p.cli.token:app",
    "reshard": "giaann_p2p.cli.reshard:reshard",
}
"""Where each command is, in the order in which the help lists them."""
app = typer.Typer(
    cls=lazy_group(_COMMANDS),
    help="GIAANN: a sparse language model of concept columns.",
    epilog=EXPLAINED,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


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
    for variable, count in ONE_THREAD.items():  # read by torch and numpy, which commands import
        os.environ.setdefault(variable, count)
    open_streams()
    try:
        with ctrl_c_told():
            app(prog_name="giaann")
    except GiaannError as error:
        complain(str(error))
        sys.exit(error.exit_code)
    except KeyboardInterrupt:  # Ctrl-C before the command began; `ctrl_c_told` reported it
        sys.exit(INTERRUPTED)
