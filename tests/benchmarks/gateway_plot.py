"""Draws what a gateway says and takes, second by second, while many streams go on."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from giaann_p2p.cli.pictures.canvas import FAINT, MUTED, draw

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TOKENS, _MEMORY, _CLIENT = "#2b6cb0", "#c4572e", "#69707d"
_SMOOTH = 5
"""Seconds over which the tokens are averaged: an answer counts when it is whole."""


def draw_streams(
    path: Path, said: Sequence[int], memory: Sequence[float], client: float, streams: int
) -> None:
    """Draw the tokens and the memory of each second, beside the Python client's mean rate."""

    def paint(figure: "Figure") -> None:
        tokens, taken = figure.subplots(2, 1, sharex=True)
        seconds = range(1, len(said) + 1)
        tokens.plot(seconds, _averaged(said), color=_TOKENS, label=f"{streams} streams over HTTP")
        tokens.axhline(client, color=_CLIENT, linestyle="--", label="Python client, mean")
        tokens.set_ylabel("tokens a second")
        taken.plot(range(1, len(memory) + 1), memory, color=_MEMORY, label="the gateway's memory")
        taken.set_ylabel("MB")
        taken.set_xlabel("seconds")
        for axes in (tokens, taken):
            axes.set_ylim(0, 1.1 * axes.get_ylim()[1])
            axes.grid(color=FAINT)
            axes.tick_params(colors=MUTED)
            axes.legend(frameon=False, loc="lower right")
        figure.tight_layout()

    draw(path, 6.4, 4.2, paint)


def _averaged(said: Sequence[int]) -> list[float]:
    """Return the mean of each second and those before it, up to `_SMOOTH` in all."""
    parts = [said[max(0, at - _SMOOTH + 1) : at + 1] for at in range(len(said))]
    return [sum(part) / len(part) for part in parts]
