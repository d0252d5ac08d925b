"""Shows a column, of a swarm or of a brain: the options, the table, the picture."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from giaann_p2p.errors import UsageError
from giaann_p2p.terminal import harmless, readable, say, show

if TYPE_CHECKING:
    from giaann_p2p.client.column import Column, Leads
    from giaann_p2p.gateway.views import ShownColumn, ShownLead

Noun = Annotated[
    str,
    typer.Argument(
        metavar="NOUN",
        help="A noun, such as anarchism or 'civil war'; for a model of words, in the singular.",
    ),
]
MostWords = Annotated[int, typer.Option("--words", min=1, max=256, help="How many words to show.")]
MostLeads = Annotated[
    int,
    typer.Option("--leads", min=1, max=64, help="How many words to show that each one leads to."),
]


def checked_noun(noun: str) -> str:
    """Return a noun with what is not UTF-8 replaced; UsageError if it is empty."""
    if not noun.strip():
        raise UsageError("the noun is empty: give one, for example anarchism or 'civil war'")
    return readable(noun)


def show_column(found: "Column | ShownColumn", learner: str) -> None:
    """Print a column as a table, or, if it is empty, that the `learner` has not learned it."""
    if found.words:
        show(_table(found))
        say(f"{found.concept}: {size_of(found)} words, {len(found.words):,} of them shown")
    else:
        say(f"{found.concept}: {learner} has not learned this noun; try another form of it")


def size_of(found: "Column | ShownColumn") -> str:
    """Return the size of a column in words."""
    return f"{'at least ' if found.at_least else ''}{found.size:,}"


def draw_if_wanted(found: "Column | ShownColumn", picture: Path | None) -> None:
    """Draw a column that has words, if there is a file to draw it into."""
    if picture is not None:
        from giaann_p2p.cli.pictures.column_picture import draw_column

        draw_column(found, picture)


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
