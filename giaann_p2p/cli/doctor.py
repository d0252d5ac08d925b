"""`giaann doctor`: checks whether a peer on this machine can join a swarm, and why not."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from giaann_p2p.cli.health import AnyLink, Json
from giaann_p2p.terminal import FAILED, printable, say, say_json
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
        list[str] | None, typer.Option(metavar="ADDRESS", help="Address that it will announce.")
    ] = None,
    relay: Annotated[bool, typer.Option("--relay", help="It will use relays.")] = False,
    data_dir: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Its folder.")] = None,
    capacity: Annotated[
        str, typer.Option(metavar="SIZE", help="Memory that it will give.")
    ] = "1GiB",
    as_json: Json = False,
) -> None:
    """Find out why a peer cannot join a swarm from here; give this command the peer's options.

    The exit code is 0 if nothing is in the way, and 1 if something is.
    """
    from giaann_p2p.client.doctor.examine import Plan, examined

    plan = Plan(
        join=join,
        listen=tuple(listen or Plan(join="").listen),
        announce=tuple(announce or ()),
        relay=relay,
        data_dir=data_dir,
        capacity=nbytes(capacity),
    )

    async def told() -> "list[Finding]":
        found = []
        async for finding in examined(plan):
            found.append(finding)
            if not as_json:
                _tell(finding)
        return found

    found = asyncio.run(told())
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
    """Print a finding; unprintable characters are replaced, because it may quote a peer."""
    say(printable(f"{_MARKS[finding.verdict]} {finding.check}: {finding.said}"))
    if finding.remedy:
        say(printable(f"        -> {finding.remedy}"))
