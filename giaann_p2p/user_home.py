"""The home folder of the user who runs this process."""

from pathlib import Path

from giaann_p2p.errors import UsageError


def home(instead: str) -> Path:
    """Return the home folder; UsageError if there is none, as in some containers.

    `instead`: the environment variable that the user could set instead of HOME.
    """
    try:
        return Path.home()
    except RuntimeError:
        raise UsageError(f"this user has no home folder: set HOME or {instead}") from None
