"""Draws which storage peers hold which shards of a swarm, and how many replicas each shard has."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from giaann_p2p.cli.pictures.canvas import FAINT, INK, MUTED, draw
from giaann_p2p.cli.shard_map import HELD, ShardMap
from giaann_p2p.terminal import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLORS = {"": "#f2f3f6", "cold": "#9db4d6", "syncing": "#e3a53a", "ready": "#2f8f5b"}
"""Colors by the state of a replica; the first marks a shard that the peer does not hold."""
_LACKING = "#c4572e"
_SHARD, _PEER = 0.1, 0.24
"""Width of a shard and height of a peer, in inches, as long as there is room."""
_LEAST_WIDE, _MOST_WIDE, _MOST_HIGH = 4.0, 16.0, 20.0
_LEFT, _RIGHT, _ABOVE, _BELOW, _BARS, _GAP = 1.2, 0.3, 1.0, 0.55, 0.7, 0.15
"""Margins of the map, height of the bars above it, and gap between both, in inches."""
_MOST_NAMED = 120
"""Maximum number of peers whose names can be read beside the map."""


def draw_map(found: ShardMap, path: Path) -> None:
    """Draw a map of shards into a file."""
    across = min(_MOST_WIDE, max(_LEAST_WIDE, _SHARD * len(found.shards)))
    down = min(_MOST_HIGH, _PEER * max(1, len(found.peers)))
    width, height = _LEFT + across + _RIGHT, _ABOVE + _BARS + _GAP + down + _BELOW

    def paint(figure: "Figure") -> None:
        _title(figure, found, height)
        left, wide = _LEFT / width, across / width
        under = _BELOW / height
        grid = figure.add_axes((left, under, wide, down / height))
        _grid(grid, found)
        above = under + (down + _GAP) / height
        bars = figure.add_axes((left, above, wide, _BARS / height), sharex=grid)
        _bars(bars, found)

    draw(path, width, height, paint)


def _title(figure: "Figure", found: ShardMap, height: float) -> None:
    left = 0.2 / figure.get_figwidth()
    figure.text(left, 1 - 0.25 / height, printable(found.name), size=13, weight="bold", va="center")
    figure.text(left, 1 - 0.5 / height, found.summary, color=MUTED, va="center")


def _grid(axes: "Axes", found: ShardMap) -> None:
    from matplotlib.colors import ListedColormap

    states = [*_COLORS]
    rows = {one.name: row for row, one in enumerate(found.peers)}
    cells = np.zeros((max(1, len(rows)), len(found.shards)), np.uint8)
    for shard, holders in enumerate(found.shards):
        for name, state in holders:
            if name in rows:
                cells[rows[name], shard] = states.index(state)
    colors = ListedColormap([*_COLORS.values()])
    axes.imshow(
        cells, cmap=colors, vmin=0, vmax=len(states) - 1, aspect="auto", interpolation="nearest"
    )
    named = [printable(one.label) for one in found.peers] if len(rows) <= _MOST_NAMED else []
    axes.set_yticks(range(len(named)), named, size=8)
    axes.set_xlabel("shard")
    _plain(axes)


def _bars(axes: "Axes", found: ShardMap) -> None:
    from matplotlib.patches import Patch

    keys = [Patch(facecolor=_COLORS[state], label=state) for state in HELD]
    axes.legend(
        handles=keys, loc="lower right", bbox_to_anchor=(1, 1), ncols=len(keys), frameon=False
    )
    ready = np.array(found.ready)
    most = max(found.replicas, int(ready.max(initial=0)))
    edges = np.arange(len(ready) + 1) - 0.5
    lacking = np.where(ready < found.replicas, most + 0.5, 0)  # also where no peer is ready
    axes.stairs(lacking, edges, fill=True, color=_LACKING)
    axes.stairs(ready, edges, fill=True, color=MUTED)
    axes.axhline(found.replicas, color=INK, linewidth=0.8, linestyle=":")
    axes.set_ylim(0, most + 0.5)
    axes.set_yticks([0, found.replicas])
    axes.set_ylabel("ready", color=MUTED)
    axes.tick_params(labelbottom=False)
    _plain(axes)


def _plain(axes: "Axes") -> None:
    for spine in axes.spines.values():
        spine.set_color(FAINT)
    axes.tick_params(length=0)
