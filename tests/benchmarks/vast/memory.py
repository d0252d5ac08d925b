"""The memory that the processes of a swarm take together, by what they are for."""

from pathlib import Path

from giaann_p2p.local import linux
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.units import readable_bytes


def memory(swarm: LocalSwarm) -> str:
    """Return the proportional part of memory of all peers of each role, and of their p2pd's."""
    found: dict[str, int] = {}
    for peer in swarm.peers():
        found[peer.role] = found.get(peer.role, 0) + _of(peer.pid)
        for pid in linux.descendants(peer.pid):
            kind = linux.command(pid)
            found[kind] = found.get(kind, 0) + _of(pid)
    return ", ".join(f"{kind} {readable_bytes(size)}" for kind, size in found.items())


def _of(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
