"""Processor time that a swarm and its client take, by what the processes are for."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from giaann_p2p.local import linux
from giaann_p2p.local.swarm import LocalSwarm
from tests.benchmarks.swarm.relay import NAME as RELAY

P2PD, PARSING, CLIENT = "p2pd", "parsing", "client"
_NANO = 1e-9


class Usage(NamedTuple):
    """See the module."""

    seconds: Mapping[str, float]
    """By kind: storage, compute, bootstrap, parsing, p2pd, relay, client."""
    queued: float
    """Seconds that all of them together were ready to run, and others had the cores."""

    @property
    def whole(self) -> float:
        """Seconds of all kinds."""
        return sum(self.seconds.values())


class _Looking:
    """What `taken` itself took of this process's time: as much as a client of a short answer."""

    seconds = 0.0


def taken(swarm: LocalSwarm) -> Usage:
    """Return what was taken so far."""
    me = os.getpid()
    ran, queued = processor_time(me)
    found = [(CLIENT, (ran - _Looking.seconds, queued))]
    found += [(P2PD, processor_time(pid)) for pid in linux.children(me) if _kind(pid) == P2PD]
    for peer in swarm.peers():
        found.append((peer.role, processor_time(peer.pid)))
        found += [(_kind(pid), processor_time(pid)) for pid in linux.descendants(peer.pid)]
    _Looking.seconds += processor_time(me)[0] - ran
    return together(Usage({kind: ran}, queued) for kind, (ran, queued) in found)


def between(before: Usage, after: Usage) -> Usage:
    """Return what was taken meanwhile."""
    seconds = {
        kind: max(0.0, now - before.seconds.get(kind, 0.0)) for kind, now in after.seconds.items()
    }
    return Usage(seconds, max(0.0, after.queued - before.queued))


def together(usages: Iterable[Usage]) -> Usage:
    """Return the sum."""
    seconds: dict[str, float] = {}
    queued = 0.0
    for one in usages:
        queued += one.queued
        for kind, more in one.seconds.items():
            seconds[kind] = seconds.get(kind, 0.0) + more
    return Usage(seconds, queued)


def processor_time(pid: int) -> tuple[float, float]:
    """Return the seconds that a process's threads ran, and those that they waited for a core.

    Those of ended ones are lost. It is exact: what the system counts otherwise, it counts in
    hundredths of a second, and a token takes less.
    """
    ran = queued = 0
    for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            numbers = task.read_text().split()
        except OSError:  # it has ended
            continue
        ran += int(numbers[0])
        queued += int(numbers[1])
    return ran * _NANO, queued * _NANO


def _kind(pid: int) -> str:
    """Tell what a peer's child is for."""
    name = linux.command(pid)
    return name if name in (P2PD, RELAY) else PARSING
