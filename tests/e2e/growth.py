"""What the processes of a swarm take, looked at again and again: whether any of it grows.

Only processes that live long tell: from each that lived for a while, what it took early is compared
with what it took late. What it stores grows, too, if slowly: so much is allowed for.
"""

import re
import statistics
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from giaann_p2p.local import linux
from giaann_p2p.local.swarm import LocalSwarm

_TASKS = re.compile(r"^giaann_tasks (\S+)$", re.MULTILINE)
_PAGE = 4096
_WITHIN = 2.0
_SETTLED = 60.0
"""Seconds from its beginning after which a process has all that it needs."""


class Sample(NamedTuple):
    """What one process took at a time."""

    at: float
    resident: int
    """Bytes."""
    files: int
    tasks: int
    """0 where they are not known."""


class Grown(NamedTuple):
    """How much more a process took late than early, by the medians."""

    process: str
    seconds: float
    resident: float
    files: float
    tasks: float


class Growth:
    """Samples by process."""

    def __init__(self, swarm: LocalSwarm) -> None:
        self._swarm = swarm
        self._samples: dict[tuple[str, int], list[Sample]] = {}

    def look(self, now: float) -> None:
        """Look at all processes; those that end meanwhile are passed over."""
        for peer in self._swarm.peers():
            if peer.pid:
                tasks = _tasks(peer.metrics_port) if peer.metrics_port else 0
                self._note((peer.name, peer.pid), peer.pid, now, tasks)
                for pid in linux.descendants(peer.pid):
                    self._note((f"{peer.name}'s p2pd", pid), pid, now, 0)

    def grown(self, least: float = 2 * _SETTLED) -> Iterator[Grown]:
        """Compare for each process that lived for so many seconds, the longest first."""
        by_length = sorted(self._samples.items(), key=lambda one: -_seconds(one[1]))
        for (name, pid), samples in by_length:
            if _seconds(samples) < least:
                return
            settled = [one for one in samples if one.at - samples[0].at >= _SETTLED]
            third = max(1, len(settled) // 3)
            early, late = settled[:third], settled[-third:]
            yield Grown(
                f"{name} ({pid})",
                _seconds(samples),
                _median(late, lambda one: one.resident) - _median(early, lambda one: one.resident),
                _median(late, lambda one: one.files) - _median(early, lambda one: one.files),
                _median(late, lambda one: one.tasks) - _median(early, lambda one: one.tasks),
            )

    def _note(self, key: tuple[str, int], pid: int, now: float, tasks: int) -> None:
        try:
            resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
            files = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
        except (OSError, IndexError):
            return
        self._samples.setdefault(key, []).append(Sample(now, resident, files, tasks))


def _tasks(port: int) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=_WITHIN) as page:
            found = _TASKS.search(page.read().decode())
    except OSError:
        return 0  # it stands still, or has just ended
    return round(float(found[1])) if found else 0


def _seconds(samples: list[Sample]) -> float:
    return samples[-1].at - samples[0].at


def _median(samples: list[Sample], what: Callable[[Sample], int]) -> float:
    known = [what(one) for one in samples if what(one)]
    return statistics.median(known) if known else 0.0
