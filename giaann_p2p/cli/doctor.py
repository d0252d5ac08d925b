"""`giaann doctor`: checks whether a peer on this machine can join a swarm, and if not, why."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from giaann_p2p.cli.link_option import AnyLink, Json
from giaann_p2p.exit_codes import FAILED
from giaann_p2p.terminal import printable, say, say_json
from giaann_p2p.units import nbytes

if TYPE_CHECKING:
    from giaann_p2p.client.doctor.finding import Finding

_MARKS = {"ok": "ok     ", "note": "note   ", "problem": "PROBLEM"}


def doctor(
    join: AnyLink,
    listen: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help="Address that the peer will listen on. \\[default: /ip4/0.0.0.0/tcp/0]",
        ),
    ] = None,
    announce: Annotated[
        list[str] | None,
        typer.Option(metavar="ADDRESS", help="Address that the peer will announce."),
    ] = None,
    relay: Annotated[bool, typer.Option("--relay", help="The peer will use relays.")] = False,
    data_dir: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="The peer's data folder.")
    ] = None,
    capacity: Annotated[
        str, typer.Option(metavar="SIZE", help="Memory that the peer will offer.")
    ] = "1GiB",
    remember: Annotated[
        str, typer.Option(metavar="SIZE", help="Disk space for the deltas of recent chunks.")
    ] = "64MiB",
    cold: Annotated[
        str, typer.Option(metavar="SIZE", help="Disk space for cold copies.")
    ] = "64GiB",
    as_json: Json = False,
) -> None:
    """Find out why a peer cannot join a swarm from this machine; pass the options of that peer.

    The exit code is 0 if nothing keeps the peer from joining, and 1 if something does.
    """
    from giaann_p2p.client.doctor.examine import Plan, examined

    plan = Plan(
        join=join,
        listen=tuple(listen or Plan(join="").listen),
        announce=tuple(announce or ()),
        relay=relay,
        data_dir=data_dir,
        capacity=nbytes(capacity),
        remember=nbytes(remember),
        cold=nbytes(cold),
    )

    async def told() -> "list[Finding]":
        found = []
        async for finding in examined(plan):
            found.append(finding)
            if not as_json:
                _tell(finding)
        return found

    _conclude(asyncio.run(told()), as_json)


def _conclude(found: "list[Finding]", as_json: bool) -> None:
    """Print a summary of the findings; exit with FAILED if one keeps the peer from joining."""
    problems = sum(one.verdict == "problem" for one in found)
    if as_json:
        say_json({"well": not problems, "findings": [msgspec.structs.asdict(one) for one in found]})
    elif problems:
        say(f"{problems} problem{'' if problems == 1 else 's'}: see above")
    else:
        say("nothing keeps this peer from joining")
    if problems:
        raise typer.Exit(FAILED)


def _tell(finding: "Finding") -> None:
    """Print a finding, without unprintable characters: it may quote a peer."""
    say(printable(f"{_MARKS[finding.verdict]} {finding.check}: {finding.said}"))
    if finding.remedy:
        say(printable(f"        -> {finding.remedy}"))
