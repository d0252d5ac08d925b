"""Draws a column: its words, and the neurons of other columns that they lead to most strongly."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from giaann_p2p.cli.pictures.canvas import FAINT, INK, MUTED, draw
from giaann_p2p.cli.pictures.column_plan import HEAD, Link, Plan, plan_of
from giaann_p2p.terminal import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from giaann_p2p.client.column import Column
    from giaann_p2p.gateway.views import ShownColumn

_WIDTH, _ROW, _TITLE = 8.0, 0.22, 0.7
"""Width of a picture, height of a row and of the title, in inches."""
_LEFT, _RIGHT, _EDGE = 2.3, 5.5, 7.7
"""Where the words, the neurons of other columns, and these columns' boxes end, in inches."""
_MIDDLE, _BULGE = (_LEFT + _RIGHT) / 2, 0.8
"""Where the control points of connections to other columns are, and how far those of connections
between words of the column are to the right of these words, to which they return; in inches."""
_LETTERS = 26
"""Maximum number of letters of a word that are drawn."""
_COLORS = ("#3566c0", "#c4572e", "#2f8f5b", "#8a4fb5", "#b08415", "#2a8ea6", "#b03a6b", "#5d6b1e")


def draw_column(column: "Column | ShownColumn", path: Path) -> None:
    """Draw a column that has words into a file."""
    plan = plan_of(column)
    height = _TITLE + _ROW * (plan.height + 1)

    def paint(figure: "Figure") -> None:
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, _WIDTH)
        axes.set_ylim(height, 0)  # inches from the top
        _title(axes, column, plan)
        _links(axes, plan, plan.inner, is_inner=True)
        _links(axes, plan, plan.links, is_inner=False)
        _words(axes, plan)
        _boxes(axes, plan)

    draw(path, _WIDTH, height, paint)


def _title(axes: "Axes", column: "Column | ShownColumn", plan: Plan) -> None:
    axes.text(0.2, 0.25, _fit(column.concept), size=13, weight="bold", va="center")
    size = f"at least {column.size:,}" if column.at_least else f"its {column.size:,}"
    said = f"{len(column.words):,} of {size} words, and what they lead to"
    if plan.left_out:
        said += f"; {plan.left_out:,} weaker connections are not shown"
    axes.text(0.2, 0.5, said, color=MUTED, va="center")


def _words(axes: "Axes", plan: Plan) -> None:
    heights = [_inches(word.y) for word in plan.words]
    colors = [_color(at) for at in range(len(plan.words))]
    sizes = [12 + 60 * word.share for word in plan.words]
    axes.scatter([_LEFT] * len(heights), heights, s=sizes, c=colors, zorder=3)
    for word, height in zip(plan.words, heights, strict=True):
        axes.text(_LEFT - 0.12, height, _fit(word.text), ha="right", va="center", zorder=4)


def _boxes(axes: "Axes", plan: Plan) -> None:
    from matplotlib.patches import Rectangle

    for box in plan.boxes:
        top, bottom = _inches(box.top), _inches(box.bottom)
        axes.add_patch(
            Rectangle(
                (_RIGHT, top), _EDGE - _RIGHT, bottom - top, facecolor="white", edgecolor=FAINT
            )
        )
        at = _RIGHT + 0.1, _inches(box.top + HEAD / 2)
        axes.text(*at, _fit(box.concept), weight="bold", va="center", color=MUTED)
    heights = [_inches(target.y) for target in plan.targets]
    axes.scatter([_RIGHT] * len(heights), heights, s=12, c=INK, zorder=3)
    for target, height in zip(plan.targets, heights, strict=True):
        axes.text(_RIGHT + 0.12, height, _fit(target.text), va="center", zorder=4)


def _links(axes: "Axes", plan: Plan, links: Iterable[Link], *, is_inner: bool) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Curve

    codes = [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4]
    for link in links:
        begin = _inches(plan.words[link.word].y)
        if is_inner:
            end, right, bend = _inches(plan.words[link.target].y), _LEFT, _LEFT + _BULGE
        else:
            end, right, bend = _inches(plan.targets[link.target].y), _RIGHT, _MIDDLE
        points = [(_LEFT, begin), (bend, begin), (bend, end), (right, end)]
        axes.add_patch(
            PathPatch(
                Curve(points, codes),
                facecolor="none",
                edgecolor=_color(link.word),
                linewidth=0.4 + 2.6 * link.share**0.5,  # a few are far stronger than the others
                alpha=0.25 if is_inner else 0.65,
                zorder=1,
            )
        )


def _color(word: int) -> str:
    return _COLORS[word % len(_COLORS)]


def _inches(row: float) -> float:
    return _TITLE + _ROW * row


def _fit(text: str) -> str:
    """Return a word from another peer, made printable and cut to fit."""
    shown = printable(text)
    return shown if len(shown) <= _LETTERS else f"{shown[: _LETTERS - 1]}…"
