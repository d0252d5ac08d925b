"""Processor time that a swarm and its client take, by what the processes are for."""

import os
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from giaann_p2p.local import linux
from giaann_p2p.local.swarm import LocalSwarm
from tests.benchmarks.swarm.relay import NAME as RELAY

P2PD, WORKERS, CLIENT = "p2pd", "parsing", "client"
_NANO = 1e-9
Usage = Mapping[str, float]
"""Seconds by kind: storage, compute, bootstrap, parsing, p2pd, relay, client."""


def taken(swarm: LocalSwarm) -> Usage:
    """Return what was taken so far."""
    found: dict[str, float] = defaultdict(float)
    found[CLIENT] = time.process_time()
    for pid in linux.children(os.getpid()):
        if linux.command(pid) == P2PD:
            found[P2PD] += processor_time(pid)
    for peer in swarm.peers():
        found[peer.role] += processor_time(peer.pid)
        for pid in linux.descendants(peer.pid):
            name = linux.command(pid)
            found[name if name in (P2PD, RELAY) else WORKERS] += processor_time(pid)
    return found


def between(before: Usage, after: Usage) -> Usage:
    """Return what was taken meanwhile."""
    return {kind: max(0.0, after[kind] - before.get(kind, 0.0)) for kind in after}


def together(usages: list[Usage]) -> Usage:
    """Return the sum."""
    found: dict[str, float] = defaultdict(float)
    for one in usages:
        for kind, seconds in one.items():
            found[kind] += seconds
    return found


def processor_time(pid: int) -> float:
    """Return the seconds of a process's threads, to the microsecond; those of ended ones are lost.

    What the system counts otherwise, it counts in hundredths of a second: a token takes less.
    """
    seconds = 0.0
    for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            seconds += int(task.read_text().split()[0]) * _NANO
        except OSError:  # it has ended
            continue
    return seconds
