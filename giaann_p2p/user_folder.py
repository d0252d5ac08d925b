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

    UsageError if the variable has a relative path, or if the user has no home folder either, as in
    some containers.
    """
    if named := os.environ.get(variable):
        if not named.startswith("/"):
            raise UsageError(f"{variable} must be an absolute path; it is {named}")
        return Path(named) / "giaann"
    try:
        return Path.home() / _USUAL[variable] / "giaann"
    except RuntimeError:
        raise UsageError(f"this user has no home folder: set HOME or {variable}") from None
