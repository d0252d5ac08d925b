"""What storage peers cost while nothing happens: memory, and the time until they answer."""

import os
import subprocess
import sys
import time
from pathlib import Path

from giaann_p2p.local import linux
from giaann_p2p.local.peer import ProcessState
from giaann_p2p.local.swarm import LocalSwarm
from tests.benchmarks.network.figures import Figure
from tests.benchmarks.targets import Target

_PEERS = 20
_SETTLE = 10.0
_WITHIN = 120.0
_SILENT = (ProcessState.WAITING, ProcessState.STARTING)
_PAUSE = 0.05
_IMPORTING = "import hivemind, sys; print(flush=True); sys.stdin.read()"
_MB = 1e6


def memory() -> list[Figure]:
    """Measure one peer that nobody has forked, then many."""
    return [*_alone(), *_many()]


def _alone() -> list[Figure]:
    """Compare a peer in a process of its own with a process that has imported hivemind."""
    imported = _imported()
    with LocalSwarm(storages=0) as swarm:
        folder, status = swarm.folder.path / "alone", swarm.folder.path / "alone.json"
        command = [sys.executable, "-W", "ignore", "-c", _DAEMON, "--join", swarm.link]
        command += ["--data-dir", str(folder), "--status-file", str(status)]
        command += ["--listen", "/ip4/127.0.0.1/tcp/0"]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL, env=_environment()) as peer:
            try:
                _wait_for(status)
                time.sleep(_SETTLE)
                own, p2pd = taken(peer.pid), [taken(pid) for pid in linux.descendants(peer.pid)]
            finally:
                peer.terminate()
                time.sleep(_PAUSE)
                peer.terminate()  # it has nobody to hand over to
    beyond = own.private - imported.private
    name = "an idle storage peer in a process of its own"
    return [
        Figure("importing hivemind: private memory", imported.private / _MB, "MB"),
        Figure(f"{name}: private memory", own.private / _MB, "MB"),
        Figure(f"{name}: beyond importing hivemind", beyond / _MB, "MB", Target(most=40)),
        Figure(f"{name}: its p2pd, private", sum(one.private for one in p2pd) / _MB, "MB"),
    ]


_DAEMON = "import sys; from peers.storage.daemon import main; sys.exit(main(sys.argv[1:]))"


def _environment() -> dict[str, str]:
    return os.environ | dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def _imported() -> linux.Memory:
    command = [sys.executable, "-W", "ignore", "-c", _IMPORTING]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environment()
    ) as child:
        child.stdout.readline()  # type: ignore[union-attr]
        found = taken(child.pid)
        child.communicate()
    return found


def _wait_for(status: Path) -> None:
    until = time.monotonic() + _WITHIN
    while not status.exists():
        if time.monotonic() > until:
            raise SystemExit(f"a storage peer has told nothing within {_WITHIN:g} s")
        time.sleep(_PAUSE)


def _many() -> list[Figure]:
    began = time.monotonic()
    swarm = LocalSwarm(storages=_PEERS)
    try:
        swarm.start()
        peers = swarm.look().peers
        while any(peer.state in _SILENT for peer in peers) or len(peers) <= _PEERS:
            if time.monotonic() > began + _WITHIN:
                raise SystemExit(f"not all of {_PEERS} peers answer within {_WITHIN:g} s")
            time.sleep(_PAUSE)
            peers = swarm.look().peers
        up = time.monotonic() - began
        swarm.wait_ready()
        ready = time.monotonic() - began
        time.sleep(_SETTLE)
        storages = [peer.pid for peer in swarm.peers() if peer.role == "storage"]
        daemons = [pid for peer in storages for pid in linux.descendants(peer)]
        supervisor = swarm.look().pid
        everything = [supervisor, *linux.descendants(supervisor)]
        python = sum(taken(pid).private for pid in storages) / len(storages)
        p2pd = sum(taken(pid).private for pid in daemons) / len(storages)
        whole = sum(sum(taken(pid)) for pid in everything)
    finally:
        swarm.close()
    name = f"{_PEERS} idle storage peers"
    return [
        Figure(f"{name}: until all answer", up, "s", Target(most=15)),
        Figure(f"{name}: until all shards are ready", ready, "s"),
        Figure(f"{name}: all processes", whole / _MB, "MB", Target(most=3000)),
        Figure(f"{name}: each one's Python, private", python / _MB, "MB"),
        Figure(f"{name}: each one's p2pd, private", p2pd / _MB, "MB"),
    ]


def taken(pid: int) -> linux.Memory:
    """Look at what a process takes."""
    found = linux.memory(pid)
    if found is None:
        raise SystemExit(f"process {pid} has ended")
    return found
