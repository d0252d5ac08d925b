"""Draws a figure into a file with matplotlib, without pyplot, which would look for a screen.

A figure gives the same bytes on any day and for any user: neither the time nor the user's own
style goes into the file.
"""

import io
import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from giaann_p2p.errors import UsageError
from giaann_p2p.store.disk.small_file import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, MUTED, FAINT = "#1f2430", "#69707d", "#d5d9e0"
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text, which can be searched
    "svg.hashsalt": "giaann",
    "font.size": 9.0,
    "text.color": INK,
    "text.parse_math": False,  # a $ in a word does not begin a formula
    "savefig.dpi": 150,
}
_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}


def draw(path: Path, width: float, height: float, paint: Callable[["Figure"], None]) -> None:
    """Have `paint` draw a figure of this size in inches, and write it in the file's format."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it logs its search for fonts
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # among others: a character that the font lacks
        try:
            import matplotlib as mpl
            from matplotlib.figure import Figure
        except ImportError as error:
            raise UsageError(f"--picture: matplotlib cannot be used here: {error}") from None
        with mpl.rc_context():
            mpl.rcdefaults()
            mpl.rcParams.update(_STYLE)
            figure = Figure(figsize=(width, height))
            paint(figure)
            kind, data = path.suffix[1:].lower(), io.BytesIO()
            figure.savefig(data, format=kind, metadata=_METADATA[kind])
    write_whole(path, data.getvalue(), synced=False)
