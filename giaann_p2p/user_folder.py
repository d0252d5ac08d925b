"""The folders of the user who runs this process, as the XDG Base Directory Specification says."""

import os
from pathlib import Path
from typing import Literal

from giaann_p2p.errors import UsageError

_USUAL = {
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
}


def user_folder(variable: Literal["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"]) -> Path:
    """Return this program's folder in the one that a variable names, or that is usual without it.

    A relative path in the variable is ignored. UsageError if the user has no home folder either, as
    in some containers.
    """
    base = Path(os.environ.get(variable, ""))
    if not base.is_absolute():
        try:
            base = Path.home() / _USUAL[variable]
        except RuntimeError:
            raise UsageError(f"this user has no home folder: set HOME or {variable}") from None
    return base / "giaann"
