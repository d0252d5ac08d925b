"""The option `--picture`, for all commands that can draw what they show."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from giaann_p2p.errors import UsageError
from giaann_p2p.terminal import readable

FORMATS = (".svg", ".png")


def picture_file(name: str) -> Path:
    """Return the file to draw into; UsageError if the file or matplotlib cannot be used.

    The command line is read before a command begins, so nothing is fetched in vain.
    """
    path = Path(name)
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"--picture takes a file that ends in .svg or .png, not {readable(name)}")
    try:
        has_folder = path.parent.is_dir()
    except OSError:  # its name is too long, or the disk fails
        has_folder = False
    if not has_folder:
        raise UsageError(f"--picture: there is no folder {readable(str(path.parent))}")
    if find_spec("matplotlib") is None:
        raise UsageError("--picture needs matplotlib: pip install 'giaann-p2p[pictures]'")
    return path


Picture = Annotated[
    Path | None,
    typer.Option(
        "--picture",
        metavar="FILE",
        parser=picture_file,
        help="Also draw a picture: FILE.svg or FILE.png. Needs matplotlib.",
    ),
]
