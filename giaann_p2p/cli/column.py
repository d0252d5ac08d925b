"""`giaann column`: shows what a swarm learned about a noun."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from giaann_p2p.cli.arrival import arrived
from giaann_p2p.cli.health import Join, Json
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
from giaann_p2p.errors import UsageError
from giaann_p2p.gateway.asking import Away
from giaann_p2p.terminal import NOTHING, harmless, joining, say, say_json, show

if TYPE_CHECKING:
    from giaann_p2p.client.column import Column, Leads
    from giaann_p2p.gateway.views import ShownColumn, ShownLead
    from giaann_p2p.gateway.whereabouts import Whereabouts


def column(
    join: Join,
    concept: Annotated[
        str,
        typer.Argument(
            metavar="NOUN",
            help="A noun: anarchism, or 'civil war'; of a model of words in the singular.",
        ),
    ],
    words: Annotated[int, typer.Option(min=1, max=256, help="How many words to show.")] = 16,
    leads: Annotated[
        int, typer.Option(min=1, max=64, help="How many words to show that each one leads to.")
    ] = 4,
    verify: Verify = False,
    no_gateway: NoGateway = False,
    as_json: Json = False,
) -> None:
    """Show a noun's column: its words, how often each occurred, and what each leads to."""
    if not concept.strip():
        raise UsageError("the noun is empty: give one, for example anarchism or 'civil war'")
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
                _show(found)
            await settled(session)
            if as_json:
                say_json(msgspec.to_builtins(found) | lies_json(session))
            complain_of(session)
            return found

    with joining(as_json) as joined:
        found = asyncio.run(look(joined))
    if not found.words:
        raise typer.Exit(NOTHING)


async def _asked(
    where: "Whereabouts", concept: str, words: int, leads: int, as_json: bool
) -> "Column | ShownColumn":
    """Show a column as a gateway tells it; Away if that cannot be."""
    import msgspec

    found = await column_by(where, concept, words, leads)
    if as_json:
        say_json(msgspec.to_builtins(found))
    else:
        _show(found)
    if found.lies:
        from giaann_p2p.client.lies import Lie

        plain = msgspec.to_builtins(found.lies)
        complain_lines(lie_lines(msgspec.convert(plain, list[Lie])), voted=False)
    return found


def _show(found: "Column | ShownColumn") -> None:
    if found.words:
        show(_table(found))
        say(f"{found.concept}: {found.size:,} words, {len(found.words):,} of them shown")
    else:
        say(f"{found.concept}: the swarm has not learned this noun; try another form of it")


def _table(found: "Column | ShownColumn") -> Table:
    table = Table("word", box=None, pad_edge=False)
    for name in ("occurred", "connections"):
        table.add_column(name, justify="right")
    table.add_column("leads to")
    for word in found.words:
        shown = word.feature if word.feature is not None else f"*{found.concept}*"
        leads = harmless(", ".join(_lead(one, found.concept) for one in word.leads))
        counts = f"{word.occurrences:,}", f"{word.connections:,}"
        table.add_row(harmless(shown), *counts, leads)
    return table


def _lead(lead: "Leads | ShownLead", concept: str) -> str:
    feature = f"*{lead.concept}*" if lead.feature is None else lead.feature
    where = "" if lead.concept == concept or lead.feature is None else f"{lead.concept}/"
    return f"{where}{feature} {lead.strength:.1f}"
