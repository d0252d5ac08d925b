"""Options that most commands have: the swarm to use, and whether to print JSON."""

from typing import Annotated

import typer

from giaann_p2p.client.links import full_link, saved_names

_LINK = "The swarm's join link, as its founder printed it, or its name (`giaann join`)."
AnyLink = Annotated[str, typer.Option("--join", metavar="LINK", envvar="GIAANN_JOIN", help=_LINK)]
Join = Annotated[
    str,
    typer.Option(
        "--join",
        metavar="LINK",
        envvar="GIAANN_JOIN",
        parser=full_link,
        autocompletion=saved_names,
        help=_LINK,
    ),
]
"""A link, or the name of a saved one, on the command line. The command gets the full link."""
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
