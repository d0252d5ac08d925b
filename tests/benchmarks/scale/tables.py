"""Tables of a page: each stands between two marks that name it, and is replaced there."""

import re
from collections.abc import Callable
from typing import NamedTuple

Cells = dict[str, str]
"""What stands in a column, by row."""

_UNITS = (("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0))


class Table(NamedTuple):
    """A table that can be made anew, one column at a time."""

    name: str
    columns: tuple[str, ...]
    column: Callable[[int], Cells]
    """Returns the cells of a column, by its place."""

    def text(self) -> str:
        """Make the table."""
        made = [self.column(at) for at in range(len(self.columns))]
        lines = [("", *self.columns), ("---",) * (len(made) + 1)]
        lines += [(row, *(cells[row] for cells in made)) for row in made[0]]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def read(page: str, name: str) -> dict[str, Cells]:
    """Return the columns of a page's table, by their titles."""
    lines = _pattern(name).search(page)
    if lines is None:
        raise KeyError(name)
    rows = [line[2:-2].split(" | ") for line in lines[2].splitlines() if line.startswith("|")]
    titles, body = rows[0], rows[2:]
    return {title: {row[0]: row[at] for row in body} for at, title in enumerate(titles)}


def replaced(page: str, name: str, text: str) -> str:
    """Return a page with another table in the place of the one that has this name."""
    if not _pattern(name).search(page):
        raise KeyError(name)
    return _pattern(name).sub(lambda found: f"{found[1]}\n{text}\n{found[3]}", page)


def size(nbytes: float) -> str:
    """Return a number of bytes, as people say it."""
    unit, scale = next(((u, s) for u, s in _UNITS if nbytes >= s), _UNITS[-1])
    return f"{number(nbytes / scale)} {unit}"


def number(value: float) -> str:
    """Return a number with three digits that tell something."""
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2g}"


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- {name} -->)\n(.*?)\n?(<!-- end of {name} -->)", re.DOTALL)
