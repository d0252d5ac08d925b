"""Finds the swarms that run on this machine, by the processes of their peers."""

from pathlib import Path

from giaann_p2p.errors import GiaannError
from giaann_p2p.local import linux
from giaann_p2p.local.folder import Folder
from giaann_p2p.swarm.wire.link import Link


def folder_of(swarm_id: bytes) -> Path | None:
    """Return the folder of the swarm with this id, if this user runs it on this machine."""
    for path in linux.folders():
        if _id_of(Folder(path)) == swarm_id:
            return path
    return None


def _id_of(folder: Folder) -> bytes | None:
    """Return the id of the swarm in a folder; None if it cannot be read, or not yet."""
    try:
        record = folder.record()
        return Link.read(record.link).swarm_id if record and record.link else None
    except GiaannError:  # another swarm; its own commands report what is wrong with it
        return None
