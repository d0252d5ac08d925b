"""What the processes of a swarm take, looked at again and again: whether any of it grows.

Only processes that live long tell: from each that lived for a while, what it could not do without
early is compared with what it could not do without late, that is, the least that was seen; for how
much is under way at a time goes up and down. What it stores grows, too, if slowly: so much is
allowed for.
"""

import re
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from giaann_p2p.local import linux
from giaann_p2p.local.swarm import LocalSwarm

_TASKS = re.compile(r"^giaann_tasks (\S+)$", re.MULTILINE)
_PAGE = 4096
_WITHIN = 2.0
_SETTLED = 150.0
"""Seconds from its beginning after which a process has all that it needs: p2pd's heap grows until
it is looked through for the first time, after two minutes at the latest."""


class Sample(NamedTuple):
    """What one process took at a time."""

    at: float
    resident: int
    """Bytes."""
    files: int
    tasks: int
    """0 where they are not known."""


class Grown(NamedTuple):
    """How much more a process took late than early, at the least."""

    process: str
    seconds: float
    resident: int
    files: int
    tasks: int


class Growth:
    """Samples by process."""

    def __init__(self, swarm: LocalSwarm) -> None:
        self.most = 0
        """The most bytes that all processes took together; shared memory counts once."""
        self._swarm = swarm
        self._samples: dict[tuple[str, int], list[Sample]] = {}

    def look(self, now: float) -> None:
        """Look at all processes; those that end meanwhile are passed over."""
        together = 0
        for peer in self._swarm.peers():
            if peer.pid:
                tasks = _tasks(peer.metrics_port) if peer.metrics_port else 0
                self._note((peer.name, peer.pid), peer.pid, now, tasks)
                p2pds = linux.descendants(peer.pid)
                for pid in p2pds:
                    self._note((f"{peer.name}'s p2pd", pid), pid, now, 0)
                together += sum(map(_bytes, [peer.pid, *p2pds]))
        self.most = max(self.most, together)

    def grown(self, least: float = 3 * _SETTLED) -> Iterator[Grown]:
        """Compare for each process that lived for so many seconds, the longest first."""
        by_length = sorted(self._samples.items(), key=lambda one: -_seconds(one[1]))
        for (name, pid), samples in by_length:
            if _seconds(samples) < least:
                return
            yield compared(f"{name} ({pid})", samples)

    def _note(self, key: tuple[str, int], pid: int, now: float, tasks: int) -> None:
        try:
            resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
            files = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
        except (OSError, IndexError):
            return
        self._samples.setdefault(key, []).append(Sample(now, resident, files, tasks))


def compared(process: str, samples: list[Sample]) -> Grown:
    """Return how much more a process took in the last third of its settled life than the first."""
    settled = [one for one in samples if one.at - samples[0].at >= _SETTLED]
    third = max(1, len(settled) // 3)
    early, late = settled[:third], settled[-third:]
    return Grown(
        process,
        _seconds(samples),
        _least(late, lambda one: one.resident) - _least(early, lambda one: one.resident),
        _least(late, lambda one: one.files) - _least(early, lambda one: one.files),
        _least(late, lambda one: one.tasks) - _least(early, lambda one: one.tasks),
    )


def _tasks(port: int) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=_WITHIN) as page:
            found = _TASKS.search(page.read().decode())
    except OSError:
        return 0  # it stands still, or has just ended
    return round(float(found[1])) if found else 0


def _bytes(pid: int) -> int:
    found = linux.memory(pid)
    return found.shared + found.private if found else 0


def _seconds(samples: list[Sample]) -> float:
    return samples[-1].at - samples[0].at


def _least(samples: list[Sample], what: Callable[[Sample], int]) -> int:
    return min((what(one) for one in samples if what(one)), default=0)
