"""What was measured, and what it is to be."""

from collections.abc import Sequence
from typing import NamedTuple

from rich.table import Table

from tests.benchmarks.targets import NONE, Target


class Figure(NamedTuple):
    """One number. Without a target it is there to explain another."""

    name: str
    value: float
    unit: str
    target: Target = NONE

    @property
    def text(self) -> str:
        """The number, as it is shown."""
        return shown(self.value)


def shown(value: float) -> str:
    """Return a number with the digits that tell something."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(figures: Sequence[Figure]) -> Table:
    """Return all as a table; a mark says what is missed."""
    made = Table("", "", "unit", "target")
    for one in figures:
        missed = "" if one.target.met(one.value) else " !"
        made.add_row(one.name, one.text + missed, one.unit, _bound(one.target))
    return made


def _bound(target: Target) -> str:
    if target.least is not None:
        return f"≥ {target.least:,g}"
    return "" if target.most is None else f"≤ {target.most:,g}"


def told(figures: Sequence[Figure]) -> list[dict[str, object]]:
    """Return the same for JSON."""
    return [
        {
            "name": one.name,
            "value": one.value,
            "unit": one.unit,
            "target": _bound(one.target),
            "met": one.target.met(one.value),
        }
        for one in figures
    ]
