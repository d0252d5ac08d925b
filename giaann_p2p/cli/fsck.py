"""`giaann fsck`: compare all replicas of a swarm's shards."""

import asyncio
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from giaann_p2p.cli.fsck_shown import report_lines
from giaann_p2p.cli.link_option import Join, Json
from giaann_p2p.cli.wrong_values import a_number
from giaann_p2p.client.plain import report_json
from giaann_p2p.exit_codes import FAILED
from giaann_p2p.solo.directory import existing
from giaann_p2p.terminal import complain, errors, joining, say, say_json

if TYPE_CHECKING:
    from giaann_p2p.swarm.members.checkup import Report
    from giaann_p2p.swarm.wire.manifest import Rules

_EVERY, _SECOND = 2.0, 1.0
"""Seconds between two comparisons, and between updates of the countdown to the next."""


Against = Annotated[
    Path | None,
    typer.Option(metavar="DB", help="A solo database that should have the same content."),
]
Wait = Annotated[
    float,
    typer.Option(
        min=0,
        metavar="SECONDS",
        callback=a_number,
        help="How long to wait for replicas to agree.",
    ),
]


def fsck(
    join: Join,
    against: Against = None,
    wait: Wait = 30.0,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Report at once what differs, like --wait 0.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Compare all replicas of a swarm's shards, and print a digest of the swarm's content.

    The exit code is 0 if every shard is served, its replicas are equal, nothing was lost, and the
    digest equals that of the solo database, if one is given.
    """

    async def compared(joined: Callable[[], None]) -> "tuple[Report, Rules]":
        from giaann_p2p.cli.visiting import visiting
        from giaann_p2p.client.checkup import checked_now

        async with visiting(join) as session:
            joined()
            await session.join_dht()  # so that no replica is missed
            loop = asyncio.get_running_loop()
            end = loop.time() + (0 if no_wait else wait)
            told = ""
            while True:
                report = await checked_now(session)
                if (report.agrees and not report.silent) or loop.time() >= end:
                    return report, session.around.rules
                if (why := _why_not_yet(report)) != told:
                    told = why
                    left = f"for {end - loop.time():.0f} s more (--no-wait does not wait)"
                    complain(f"{why}; asking again {left}")
                await _paused(end)

    if against:
        existing(against)
    with joining(as_json) as joined:
        report, rules = asyncio.run(compared(joined))
    expected = _digest_of(against, rules) if against else ""
    same = not expected or report.digest == expected
    if as_json:
        say_json(report_json(report) | ({"solo": expected, "equal": same} if expected else {}))
    else:
        for line in report_lines(report, expected, time.time()):
            say(line)
    if not same and len({*rules.cuts}) > 1:
        complain(
            "columns of this swarm were cut while it ran, so only a database that giaann pull has "
            "made can have its digest"
        )
    if not (report.agrees and same):
        raise typer.Exit(FAILED)


async def _paused(end: float) -> None:
    """Pause until the next comparison, and show how many seconds are left until `end`."""
    loop = asyncio.get_running_loop()
    again = min(loop.time() + _EVERY, end)
    with errors().status("") if errors().is_terminal else nullcontext() as shown:
        while (now := loop.time()) < again:
            if shown is not None:
                shown.update(f"asking again for {end - now:.0f} s more")
            await asyncio.sleep(min(_SECOND, again - now))


def _why_not_yet(report: "Report") -> str:
    """Return why the comparison is repeated: some replicas differ, or some peers are silent."""
    if not report.agrees:
        return "not all replicas agree yet"
    silent = len(report.silent)
    return f"{silent} peer{' is' if silent == 1 else 's are'} silent, and may come back"


def _digest_of(database: Path, rules: "Rules") -> str:
    """Return the digest of a solo database's content, with columns cut as the manifest says."""
    from giaann_p2p.model.digest import digest, readable
    from giaann_p2p.store.store import Store

    founding = rules.layout
    with Store.at(database, readonly=True) as store:
        if store.layout.cuts == founding.cuts:
            return readable(store.digest())
        return readable(digest(founding.columns.cut(store.knowledge())))
