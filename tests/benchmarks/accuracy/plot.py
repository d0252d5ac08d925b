"""Draws learning curves as an SVG; matplotlib, which it needs, comes with the extra `pictures`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.benchmarks.accuracy.figures import Figures, Point


class _Line(NamedTuple):
    label: str
    model: str
    figure: str
    """The name of a figure of this model."""
    color: str
    style: str


_ACCURACY = (
    _Line("mix, columns given", "mix", "given", "C0", "--"),
    _Line("mix, causal", "mix", "top1", "C0", "-"),
    _Line("Kneser-Ney 5-gram", "Kneser-Ney 5", "top1", "C1", "-"),
    _Line("Kneser-Ney 3-gram", "Kneser-Ney 3", "top1", "C1", ":"),
    _Line("lif-test, columns given", "lif-test", "given", "C2", "--"),
    _Line("words, none (tokens are words)", "words, timing none", "top1", "C3", "-"),
)
_BITS = (
    _Line("mix, causal", "mix", "bits_per_byte", "C0", "-"),
    _Line("Kneser-Ney 5-gram", "Kneser-Ney 5", "bits_per_byte", "C1", "-"),
    _Line("Kneser-Ney 3-gram", "Kneser-Ney 3", "bits_per_byte", "C1", ":"),
)
_ROWS = {"next token right": _ACCURACY, "bits a byte": _BITS}


def pyplot() -> Any:  # noqa: ANN401  (it may not be installed)
    """Return the module that draws; exit with how to install it if it is missing."""
    try:
        import matplotlib as mpl
        from matplotlib import pyplot
    except ImportError:
        raise SystemExit("--svg needs matplotlib: pip install 'giaann-p2p[pictures]'") from None
    mpl.use("svg")
    mpl.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "accuracy", "font.size": 9}
    return pyplot


def draw(points: Sequence[Point], path: Path) -> None:
    """Draw accuracy, and bits a byte, by the number of tokens learned: a column of panels a text.

    A row has the same scale for all texts; in both rows what is better is higher.
    """
    texts = list(dict.fromkeys(point.text for point in points))
    size = 4 * len(texts), 3.2 * len(_ROWS)
    figure, panels = pyplot().subplots(
        len(_ROWS), len(texts), figsize=size, sharex="col", sharey="row", squeeze=False
    )
    for row, (what, lines) in zip(panels, _ROWS.items(), strict=True):
        for panel, text in zip(row, texts, strict=True):
            _panel(panel, [point for point in points if point.text == text], lines)
        row[0].set_ylabel(what)
        row[-1].legend(fontsize=7, frameon=False)
    panels[-1][0].invert_yaxis()  # fewer bits are better
    for panel, last, text in zip(panels[0], panels[-1], texts, strict=True):
        panel.set_title(text, fontsize=9)
        last.set_xlabel("tokens learned")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def _panel(panel: Any, points: Sequence[Point], lines: Sequence[_Line]) -> None:  # noqa: ANN401
    for line in lines:
        drawn = list(_drawn(points, line))
        if drawn:
            tokens, values = zip(*drawn, strict=True)
            panel.plot(tokens, values, line.style, color=line.color, label=line.label, marker=".")
    panel.set_xscale("log")
    ticks = [point.tokens for point in points]
    panel.set_xticks(ticks, [f"{tokens / 1000:,.0f}k" for tokens in ticks])
    panel.set_xticks([], minor=True)
    panel.grid(alpha=0.3)


def _drawn(points: Sequence[Point], line: _Line) -> Iterator[tuple[int, float]]:
    for point in points:
        for found in point.figures:
            value = getattr(found, line.figure)
            if found.model == line.model and value is not None:
                yield point.tokens, value


def points_of(told: Sequence[dict[str, Any]]) -> list[Point]:
    """Return the points that were written as JSON."""
    return [Point(**{**one, "figures": [Figures(**of) for of in one["figures"]]}) for one in told]
