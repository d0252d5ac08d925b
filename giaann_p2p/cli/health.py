"""`giaann status` and `giaann fsck`: how a swarm is, asked by a visitor."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.live import Live

from giaann_p2p.cli.health_shown import overview_json, overview_shown, report_json, report_lines
from giaann_p2p.terminal import FAILED, errors, joining, say, say_json, show

if TYPE_CHECKING:
    from giaann_p2p.client.visit import Visit
    from giaann_p2p.swarm.checkup import Report
    from giaann_p2p.swarm.overview import Overview

Join = Annotated[
    str,
    typer.Option(
        metavar="LINK",
        envvar="GIAANN_JOIN",
        help="The swarm's join link, as its founder printed it.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
_EVERY = 2.0


def status(
    join: Join,
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on showing it, every two seconds, until Ctrl-C.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show a swarm's peers, and how well they hold its shards.

    The exit code is 0 if every shard has all its replicas, and 1 if some lack some.
    """
    if watch and as_json:
        raise typer.BadParameter("--json shows how it is now; --watch goes on showing it: one only")

    async def seen(joined: Callable[[], None]) -> bool:
        from giaann_p2p.client.visit import visit
        from giaann_p2p.swarm.link import Link

        async with visit(Link.read(join)) as visiting:
            joined()
            return await _watched(visiting) if watch else await _shown(visiting, as_json)

    with joining(as_json) as joined:
        is_well = asyncio.run(seen(joined))
    if not is_well:
        raise typer.Exit(FAILED)


async def _shown(visiting: "Visit", as_json: bool) -> bool:
    found = await _seen(visiting)
    if as_json:
        say_json(overview_json(found))
    else:
        show(overview_shown(visiting.manifest.name, found))
    return found.verdict == "healthy"


async def _seen(visiting: "Visit") -> "Overview":
    return visiting.overview(await visiting.silent_peers())


async def _watched(visiting: "Visit") -> bool:
    found = await _seen(visiting)
    with Live(overview_shown(visiting.manifest.name, found), auto_refresh=False) as live:
        while True:
            await asyncio.sleep(_EVERY)
            found = await _seen(visiting)
            live.update(overview_shown(visiting.manifest.name, found), refresh=True)


def fsck(
    join: Join,
    against: Annotated[
        Path | None,
        typer.Option(metavar="DB", help="A solo database that should hold the same."),
    ] = None,
    wait: Annotated[
        float,
        typer.Option(min=0, metavar="SECONDS", help="How long replicas may take to catch up."),
    ] = 30.0,
    as_json: Json = False,
) -> None:
    """Compare all replicas of a swarm's shards, and what they come to.

    The exit code is 0 if every shard is served and all that serve one hold the same, and what the
    solo database holds, if one is given.
    """

    async def compared(joined: Callable[[], None]) -> "Report":
        from giaann_p2p.client.checkup import checked
        from giaann_p2p.client.visit import visit
        from giaann_p2p.swarm.link import Link

        async with visit(Link.read(join)) as visiting:
            joined()
            loop = asyncio.get_running_loop()
            end, told = loop.time() + wait, ""
            while True:
                peers = visiting.storage_peers()
                report = await checked(visiting.place.transport, visiting.manifest, peers)
                if (report.agrees and not report.silent) or loop.time() >= end:
                    return report
                if (why := _why_not_yet(report)) != told:
                    told = why
                    errors.print(f"giaann: {why}, asking again", markup=False)
                await asyncio.sleep(_EVERY)

    expected = _digest_of(against) if against else ""
    with joining(as_json) as joined:
        report = asyncio.run(compared(joined))
    same = not expected or report.digest == expected
    if as_json:
        say_json(report_json(report) | ({"solo": expected, "equal": same} if expected else {}))
    else:
        for line in report_lines(report, expected):
            say(line)
    if not (report.agrees and same):
        raise typer.Exit(FAILED)


def _why_not_yet(report: "Report") -> str:
    """Return what a report that is not the last word waits for."""
    if not report.agrees:
        return "not all replicas agree yet"
    silent = len(report.silent)
    return f"{silent} peer{' is' if silent == 1 else 's are'} silent, and may come back"


def _digest_of(database: Path) -> str:
    """Return the digest of all that a solo database holds."""
    from giaann_p2p.model.digest import readable
    from giaann_p2p.store.store import Store

    with Store.at(database, readonly=True) as store:
        return readable(store.digest())
