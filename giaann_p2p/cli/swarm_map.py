"""`giaann swarm map`: shows which storage peers hold which shards."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from giaann_p2p.cli.through_gateway import gateway_to, peers_by
from giaann_p2p.client.links import full_link, saved_names
from giaann_p2p.gateway.asking import Away
from giaann_p2p.terminal import joining, printable, say, say_json, show

if TYPE_CHECKING:
    from giaann_p2p.cli.shard_map import ShardMap
    from giaann_p2p.gateway.whereabouts import Whereabouts

Elsewhere = Annotated[
    str | None,
    typer.Option(
        "--join",
        metavar="LINK",
        parser=full_link,
        autocompletion=saved_names,
        help="Show a swarm elsewhere instead: its join link, or the name of a saved one.",
    ),
]


def show_map(link: str, no_gateway: bool, as_json: bool, picture: Path | None) -> None:
    """Show the map of a link's swarm; if a file is given, also draw the map into it."""
    import msgspec

    from giaann_p2p.cli.shard_map import map_table

    where = gateway_to(link, no_gateway)
    with joining(as_json) as joined:
        found = asyncio.run(_found(link, where, joined))
    if as_json:
        say_json(msgspec.to_builtins(found))
    else:
        show(map_table(found))
        say(f"{printable(found.name)}: {found.summary}")
    if picture is not None:
        from giaann_p2p.cli.pictures.map_picture import draw_map

        draw_map(found, picture)


async def _found(link: str, where: "Whereabouts | None", joined: Callable[[], None]) -> "ShardMap":
    from giaann_p2p.cli.shard_map import shard_map

    if where is not None:
        with suppress(Away):
            name, replicas, peers = await peers_by(where)
            joined()
            return shard_map(peers, name, replicas)
    from giaann_p2p.cli.visiting import visiting

    async with visiting(link) as session:
        joined()
        from giaann_p2p.gateway.shown_peers import Since, peers_now

        manifest, directory = session.manifest, session.around.directory
        overview = session.overview(await session.silent_peers())
        peers = peers_now(overview, directory, Since())
        return shard_map(peers, manifest.name, session.around.rules.replicas)
