"""`giaann status`: show a swarm's peers and its health."""

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from giaann_p2p.cli.arrival import commands_of
from giaann_p2p.cli.link_option import Join, Json
from giaann_p2p.cli.status_shown import overview_shown
from giaann_p2p.cli.through_gateway import NoGateway, gateway_to, overview_by, swarm_of
from giaann_p2p.client.plain import overview_json
from giaann_p2p.exit_codes import FAILED
from giaann_p2p.gateway.asking import Away
from giaann_p2p.terminal import joining, say_json, show

if TYPE_CHECKING:
    from rich.console import RenderableType

    from giaann_p2p.client.session import Session
    from giaann_p2p.swarm.members.commands import Commands
    from giaann_p2p.swarm.members.overview import Overview

_EVERY = 2.0
"""Seconds between two looks at a swarm."""


def status(
    join: Join,
    watch: Annotated[
        bool, typer.Option("--watch", help="Repeat every two seconds, until Ctrl-C.")
    ] = False,
    no_gateway: NoGateway = False,
    as_json: Json = False,
) -> None:
    """Show a swarm's peers, and whether its shards have all their replicas.

    The exit code is 0 if every shard has all its replicas, and 1 if any replica is missing.
    """
    if watch and as_json:
        raise typer.BadParameter(
            "--json prints a single report, but --watch repeats it: give one of them"
        )

    where = gateway_to(join, no_gateway or watch)

    async def seen(joined: Callable[[], None]) -> bool:
        if where is not None:
            with suppress(Away):
                name, found = await overview_by(where)
                joined()
                return _said(name, found, commands_of(swarm_of(join)), as_json)
        from giaann_p2p.cli.visiting import visiting

        async with visiting(join) as session:
            joined()
            session.commands = commands_of(session.manifest.swarm_id)
            return await _watched(session) if watch else await _shown(session, as_json)

    with joining(as_json) as joined:
        is_well = asyncio.run(seen(joined))
    if not is_well:
        raise typer.Exit(FAILED)


async def _shown(visiting: "Session", as_json: bool) -> bool:
    found = await _seen(visiting)
    return _said(visiting.manifest.name, found, visiting.commands, as_json)


def _said(name: str, found: "Overview", commands: "Commands", as_json: bool) -> bool:
    """Print an overview; return whether the swarm is healthy."""
    if as_json:
        say_json(overview_json(found))
    else:
        show(overview_shown(name, found, commands))
    return found.verdict == "healthy"


async def _seen(visiting: "Session") -> "Overview":
    return visiting.overview(await visiting.silent_peers())


def _told(visiting: "Session", found: "Overview") -> "RenderableType":
    return overview_shown(visiting.manifest.name, found, visiting.commands)


async def _watched(visiting: "Session") -> bool:
    if not sys.stdout.isatty():  # into a pipe, print one report after another
        while True:
            await _shown(visiting, as_json=False)
            await asyncio.sleep(_EVERY)
    from rich.live import Live

    found = await _seen(visiting)
    with Live(_told(visiting, found), auto_refresh=False) as live:
        while True:
            await asyncio.sleep(_EVERY)
            live.update(_told(visiting, await _seen(visiting)), refresh=True)
