"""`giaann publish`: brings a brain on this machine into a swarm."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from giaann_p2p.cli.arrival import arrived
from giaann_p2p.cli.brain_options import Db
from giaann_p2p.cli.link_option import Join, Json
from giaann_p2p.terminal import joining, progress_bar, readable, say, say_json

if TYPE_CHECKING:
    from giaann_p2p.client.publishing import Published


def publish(
    join: Join,
    db: Db,
    anyway: Annotated[
        bool,
        typer.Option(
            "--anyway", help="Publish even if the swarm knows some of its texts; they count twice."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Bring what a brain on this machine has learned into a swarm of the same model.

    A brain counts once, however often it is published; an interrupted publication is continued. A
    brain that has learned more since is refused, because what it knew before would count twice.
    """

    async def published(joined: Callable[[], None]) -> "Published":
        from giaann_p2p.cli.visiting import visiting
        from giaann_p2p.client.publishing import publish as brought
        from giaann_p2p.solo.directory import existing
        from giaann_p2p.store.store import Store

        with Store.at(existing(db)) as store:
            async with visiting(join) as session:
                joined()
                arrived(session)
                with progress_bar("publishing") as bar:
                    return await brought(
                        session,
                        store,
                        anyway=anyway,
                        progress=lambda done, all_: bar.update(
                            done / max(all_, 1), f"{done:,} of {all_:,} chunks"
                        ),
                    )

    with joining(as_json) as joined:
        found = asyncio.run(published(joined))
    if as_json:
        say_json(found._asdict())
    else:
        say(
            f"{readable(str(db))}: {found.rows:,} rows, {found.connections:,} connections are in"
            f" the swarm, as job {found.job}; {found.pushed:,} of {found.chunks:,} chunks were"
            " pushed, the others were there already"
        )
