"""Finds the folder of a swarm that runs on this machine, by the processes of its peers."""

from pathlib import Path

from giaann_p2p.errors import GiaannError
from giaann_p2p.local import linux
from giaann_p2p.local.folder import Folder
from giaann_p2p.swarm.wire.link import Link


def folder_of(swarm_id: bytes) -> Path | None:
    """Return the folder of a swarm, given its id; None if this user does not run that swarm."""
    for path in linux.folders():
        if _id_of(Folder(path)) == swarm_id:
            return path
    return None


def _id_of(folder: Folder) -> bytes | None:
    """Return the id of the swarm in a folder; None if it has none yet, or it is unreadable."""
    try:
        record = folder.record()
        return Link.read(record.link).swarm_id if record and record.link else None
    except GiaannError:  # the commands of that swarm report it
        return None
