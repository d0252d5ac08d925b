"""`giaann column`: shows what a swarm learned about a noun."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from giaann_p2p.cli.arrival import arrived
from giaann_p2p.cli.health import Join, Json
from giaann_p2p.cli.verified import Verify, complain_of, lies_json, settled, share_of
from giaann_p2p.errors import UsageError
from giaann_p2p.terminal import NOTHING, harmless, joining, say, say_json, show

if TYPE_CHECKING:
    from giaann_p2p.client.column import Column, Leads


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
    as_json: Json = False,
) -> None:
    """Show a noun's column: its words, how often each occurred, and what each leads to."""
    if not concept.strip():
        raise UsageError("the noun is empty: give one, for example anarchism or 'civil war'")
    import msgspec

    async def look(joined: Callable[[], None]) -> "Column":
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


def _show(found: "Column") -> None:
    if found.words:
        show(_table(found))
        say(f"{found.concept}: {found.size:,} words, {len(found.words):,} of them shown")
    else:
        say(f"{found.concept}: the swarm has not learned this noun; try its singular")


def _table(found: "Column") -> Table:
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


def _lead(lead: "Leads", concept: str) -> str:
    feature = f"*{lead.concept}*" if lead.feature is None else lead.feature
    where = "" if lead.concept == concept or lead.feature is None else f"{lead.concept}/"
    return f"{where}{feature} {lead.strength:.1f}"
