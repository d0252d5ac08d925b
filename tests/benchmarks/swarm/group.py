"""Figures that belong together, and what bounds them."""

from collections.abc import Sequence
from typing import NamedTuple

from rich.console import Console

from tests.benchmarks.network.figures import Figure, table
from tests.benchmarks.network.figures import told as figures_told


class Group(NamedTuple):
    """See the module."""

    title: str
    figures: Sequence[Figure]
    bound: str
    """In a line, computed from what was measured."""


def show(group: Group, console: Console) -> None:
    """Print a table, and the bound below it."""
    shown = table(group.figures)
    shown.title, shown.title_justify = group.title, "left"
    console.print(shown)
    console.print(f"bound: {group.bound}\n", soft_wrap=True, highlight=False)


def told(groups: Sequence[Group]) -> list[dict[str, object]]:
    """Return the same for JSON."""
    return [
        {"title": one.title, "bound": one.bound, "figures": figures_told(one.figures)}
        for one in groups
    ]
