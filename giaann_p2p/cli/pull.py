"""`giaann pull`: copies a swarm's model into a brain on this machine."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from giaann_p2p.cli.arrival import arrived
from giaann_p2p.cli.brain_options import NewDb
from giaann_p2p.cli.link_option import Join, Json
from giaann_p2p.terminal import joining, progress_bar, readable, say, say_json

if TYPE_CHECKING:
    from giaann_p2p.client.pulling import Pulled


def pull(
    join: Join,
    db: NewDb,
    as_json: Json = False,
) -> None:
    """Copy all that a swarm has learned into a brain on this machine, with the same digest.

    An interrupted pull continues where it stopped; a later one fetches only what has changed.
    """

    async def pulled(joined: Callable[[], None]) -> "Pulled":
        from giaann_p2p.cli.visiting import visiting
        from giaann_p2p.client.pulling import pull as taken_home

        async with visiting(join) as session:
            joined()
            arrived(session)
            with progress_bar("pulling") as bar:
                return await taken_home(
                    session,
                    db,
                    lambda here, all_: bar.update(here / all_, f"{here:,} of {all_:,} shards"),
                )

    with joining(as_json) as joined:
        found = asyncio.run(pulled(joined))
    if as_json:
        say_json(found._asdict())
    else:
        say(
            f"{readable(str(db))}: {found.rows:,} rows, {found.connections:,} connections;"
            f" {found.downloaded:,} of {found.shards:,} shards were downloaded, the"
            " others were here already"
        )
        say(f"digest {found.digest}, the same as the swarm's")
