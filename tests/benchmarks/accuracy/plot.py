"""Draws learning curves as an SVG; matplotlib, which it needs, comes with the extra `pictures`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.accuracy.figures import Figures, Point

_LINES = {
    "mix, columns given": ("mix", "given", "C0", "--"),
    "mix, causal": ("mix", "top1", "C0", "-"),
    "Kneser-Ney 5-gram": ("Kneser-Ney 5", "top1", "C1", "-"),
    "Kneser-Ney 3-gram": ("Kneser-Ney 3", "top1", "C1", ":"),
    "lif-test, columns given": ("lif-test", "given", "C2", "--"),
}
"""By the label: the model, its figure, a color and a style."""


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
    """Draw top-1 accuracy by the number of tokens learned, a panel a text."""
    texts = list(dict.fromkeys(point.text for point in points))
    figure, panels = pyplot().subplots(
        1, len(texts), figsize=(4 * len(texts), 3.2), sharey=True, squeeze=False
    )
    for panel, text in zip(panels[0], texts, strict=True):
        _panel(panel, text, [point for point in points if point.text == text])
    panels[0][0].set_ylabel("next token right")
    panels[0][-1].legend(fontsize=7, frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def _panel(panel: Any, text: str, points: Sequence[Point]) -> None:  # noqa: ANN401
    for label, (model, name, color, style) in _LINES.items():
        known = [(point.tokens, _of(point, model)) for point in points]
        drawn = [(tokens, getattr(found, name)) for tokens, found in known if found]
        if drawn:
            panel.plot(*zip(*drawn, strict=True), style, color=color, label=label, marker=".")
    panel.set_xscale("log")
    ticks = [point.tokens for point in points]
    panel.set_xticks(ticks, [f"{tokens / 1000:,.0f}k" for tokens in ticks])
    panel.set_xticks([], minor=True)
    panel.set_title(text, fontsize=9)
    panel.set_xlabel("tokens learned")
    panel.grid(alpha=0.3)


def _of(point: Point, model: str) -> Figures | None:
    return next((figures for figures in point.figures if figures.model == model), None)
