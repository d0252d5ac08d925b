"""`giaann column`: shows what a swarm learned about a noun."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import typer

from giaann_p2p.cli.arrival import arrived
from giaann_p2p.cli.column_shown import (
    MostLeads,
    MostWords,
    Noun,
    checked_noun,
    draw_if_wanted,
    show_column,
)
from giaann_p2p.cli.link_option import Join, Json
from giaann_p2p.cli.pictures.option import Picture
from giaann_p2p.cli.through_gateway import NoGateway, column_by, gateway_to
from giaann_p2p.cli.verified import (
    Verify,
    complain_lines,
    complain_of,
    lie_lines,
    lies_json,
    settled,
    share_of,
)
from giaann_p2p.exit_codes import NOTHING
from giaann_p2p.gateway.asking import Away
from giaann_p2p.terminal import joining, say_json

if TYPE_CHECKING:
    from giaann_p2p.client.column import Column
    from giaann_p2p.gateway.views import ShownColumn
    from giaann_p2p.gateway.whereabouts import Whereabouts


def column(
    join: Join,
    concept: Noun,
    words: MostWords = 16,
    leads: MostLeads = 4,
    picture: Picture = None,
    verify: Verify = False,
    no_gateway: NoGateway = False,
    as_json: Json = False,
) -> None:
    """Show a noun's column: its words, how often each occurred, and what each leads to."""
    concept = checked_noun(concept)
    import msgspec

    where = gateway_to(join, no_gateway or verify)

    async def look(joined: Callable[[], None]) -> "Column | ShownColumn":
        if where is not None:
            with suppress(Away):
                return await _asked(where, concept, words, leads, as_json)
        from giaann_p2p.cli.visiting import visiting

        async with visiting(join, share_of(verify)) as session:
            from giaann_p2p.client.column import column as looked_at

            joined()
            arrived(session)
            found = await looked_at(session, concept, words, leads)
            if not as_json:
                show_column(found, "the swarm")
            await settled(session)
            if as_json:
                say_json(msgspec.to_builtins(found) | lies_json(session))
            complain_of(session)
            return found

    with joining(as_json) as joined:
        found = asyncio.run(look(joined))
    if not found.words:
        raise typer.Exit(NOTHING)
    draw_if_wanted(found, picture)


async def _asked(
    where: "Whereabouts", concept: str, words: int, leads: int, as_json: bool
) -> "Column | ShownColumn":
    """Show a column that a gateway returns; raise Away if it returns none."""
    import msgspec

    found = await column_by(where, concept, words, leads)
    if as_json:
        say_json(msgspec.to_builtins(found))
    else:
        show_column(found, "the swarm")
    if found.lies:
        from giaann_p2p.client.lies import Lie

        plain = msgspec.to_builtins(found.lies)
        complain_lines(lie_lines(msgspec.convert(plain, list[Lie])), voted=False)
    return found
