"""Runs after a command has joined a swarm: chooses its advice, and warns of data loss."""

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from giaann_p2p.errors import UsageError
from giaann_p2p.swarm.members.commands import Commands
from giaann_p2p.terminal import complain
from giaann_p2p.user_folder import user_folder

if TYPE_CHECKING:
    from giaann_p2p.client.session import Session


def arrived(visiting: "Session") -> "LossWarning":
    """Choose the commands that messages recommend for this swarm, and warn of data that it lost."""
    visiting.commands = commands_of(visiting.manifest.swarm_id)
    warning = LossWarning(visiting)
    warning.look()
    return warning


def commands_of(swarm_id: bytes) -> Commands:
    """Return the commands that start peers of a swarm; they differ if it runs on this machine."""
    if sys.platform != "linux":  # local swarms run on Linux only
        return Commands()
    from giaann_p2p.local.here import folder_of

    folder = folder_of(swarm_id)
    if folder is None:
        return Commands()
    return Commands("" if _is_usual(folder) else f" --dir {shlex.quote(str(folder))}")


def _is_usual(folder: Path) -> bool:
    try:
        return str(folder) == os.path.realpath(usual_folder())
    except UsageError:  # no home folder, so no usual one
        return False


def usual_folder() -> Path:
    """Return the default folder of a swarm on this machine; UsageError if there is no home."""
    return user_folder("XDG_STATE_HOME") / "swarm"


class LossWarning:
    """Warns the user, only once, of data that the swarm has lost."""

    def __init__(self, visiting: "Session") -> None:
        self._visiting, self._said = visiting, False

    def __repr__(self) -> str:
        return f"<LossWarning: {'given' if self._said else 'not given'}>"

    def look(self) -> None:
        """Warn if the swarm has lost data, unless the warning was given before."""
        if not self._said and (found := self._visiting.losses()):
            self._said = True
            complain(
                f"the swarm has lost some of what it knew: {found.words(self._visiting.now)};"
                " `giaann status --join LINK` shows more"
            )
