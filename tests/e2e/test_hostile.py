"""Three of eight peers lie, shirk, forge and flood, and a stranger with them: nothing comes of it.

See `hostile.cast` for who they are. A text is learned and read all the while; then hostile peers
fall silent, and the honest ones have what was committed, and nothing else. What was done, refused
and needed is printed.

GIAANN_HOSTILE_SECONDS=300 goes on as long; GIAANN_HOSTILE_SEED=7 reads in another order.
"""

import asyncio
import os
import re
import urllib.request
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from giaann_p2p.client.session import visit
from giaann_p2p.local.peer import ProcessState, View
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.swarm.wire.link import Link
from tests.e2e.conftest import NewSwarm
from tests.e2e.honest import Figures, Honest
from tests.e2e.hostile import BEGIN, cast
from tests.e2e.hostile.tally import tally_in
from tests.e2e.material import Wiki
from tests.e2e.writer import settled
from tests.unit.local.helpers import eventually

SECONDS = float(os.environ.get("GIAANN_HOSTILE_SECONDS", "60"))
SEED = int(os.environ.get("GIAANN_HOSTILE_SEED", "1"))
READERS = 3
MOST_GROWN = 96 << 20
"""Bytes that any process of an honest peer may need more, at any time, than before the attack: a
few times what they do (10 to 25 MiB), and far less than one of the floods would take that is kept
as it comes."""
_SAMPLE = re.compile(r"^(giaann_\w+)(?:_total)? (\S+)$", re.MULTILINE)
_TOLD = (
    "giaann_refused",
    "giaann_busy",
    "giaann_unreadable",
    "giaann_records_refused",
    "giaann_connections_lost",
    "giaann_directory_records",
    "giaann_lies",
    "giaann_rows_disputed",
)
_SETTLED_WITHIN = 150.0

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400 + 2 * SECONDS)]


def test_with_hostile_peers_nothing_wrong_is_read_and_nothing_is_lost(
    new_swarm: NewSwarm, tmp_path: Path
) -> None:
    with new_swarm(**cast.PEERS, entries=cast.ENTRIES, arguments=cast.ARGUMENTS) as swarm:
        figures = Figures()
        try:
            asyncio.run(attacked(swarm, tmp_path, figures))
        finally:
            print("\n".join(["", str(figures), *figures.wrong, *figures.unserved]))
        assert figures.wrong == []
        assert figures.served >= 0.999 * figures.asked, figures.unserved
        assert figures.asked > SECONDS
        names = swarm_names(swarm)
        assert set(figures.liars) <= {names[cast.SHIRKER]}
        assert set(figures.avoided) == {names[cast.LIAR]}


async def attacked(swarm: LocalSwarm, folder: Path, figures: Figures) -> None:
    """Learn and read, in peace, under attack, and when it is over."""
    shows = partial(cast.visitors_token, swarm.folder.path)
    async with visit(Link.read(swarm.link), shows=shows) as visiting:
        manifest = visiting.manifest
        wiki = Wiki(manifest.spec, manifest.layout)
        honest = Honest(visiting, wiki, folder, SEED, figures)
        await honest.learn()
        small = await asyncio.to_thread(memory, swarm)
        for name in cast.HOSTILE:
            await asyncio.to_thread(swarm.kill, name, BEGIN)
        async with asyncio.TaskGroup() as group:
            group.create_task(honest.teach())
            for number in range(READERS):
                group.create_task(honest.read(number))
            await asyncio.sleep(SECONDS)
            honest.end()
        large = await asyncio.to_thread(memory, swarm)
        await asyncio.to_thread(told, swarm)
        for name in cast.HOSTILE:
            await asyncio.to_thread(swarm.kill, name)
        check_harmless(swarm)
        check_grown(small, large)
        report = await settled(visiting, wiki, cast.HONEST_STORAGES, _SETTLED_WITHIN)
        print(f"digest {report.digest}, the same as one machine's: {wiki.digest}")
        await asyncio.to_thread(eventually, lambda: states(swarm) == {ProcessState.READY})


def check_harmless(swarm: LocalSwarm) -> None:
    """See that they did their worst, and nobody honest took anything of it."""
    honest = tuple(peer.peer for peer in honest_peers(swarm))
    # Whoever has noticed already that a hostile owner is gone fetches what it is to have of it.
    assert states(swarm) <= {ProcessState.READY, ProcessState.RUNNING}
    assert {peer.restarts for peer in honest_peers(swarm)} == {0}
    liar, shirker, forger, stranger = (tally_of(swarm, name) for name in cast.HOSTILE)
    for lie in ("Read", "Push", "Compare"):
        assert liar[f"lies about {lie}"] > 0
    assert any(what.startswith("pushes refused") for what in shirker)
    assert any(what.startswith("records refused") for what in forger)
    assert any(what.startswith("refused as") for what in stranger)
    through = [what for one in (shirker, forger, stranger) for what in one if came_through(what)]
    assert [what for what in through if what.endswith(honest)] == []


def came_through(what: str) -> bool:
    """Tell whether somebody has taken, or told, what it should not."""
    return "TAKEN" in what or "TOLD" in what


def check_grown(small: dict[str, int], large: dict[str, int]) -> None:
    """See that no process needs much more than before."""
    grown = {process: large[process] - small.get(process, 0) for process in large}
    for process, more in sorted(grown.items()):
        print(f"{process:24} {small.get(process, 0) >> 20:5} MiB, at most {more >> 20} more")
    assert max(grown.values()) <= MOST_GROWN


def told(swarm: LocalSwarm) -> None:
    """Print what the hostile peers did, and what honest ones say of it."""
    for name in cast.HOSTILE:
        print(f"\n{name}:")
        for what, count in sorted(tally_of(swarm, name).items()):
            print(f"  {count:7,} {what}")
    for peer in [peer for peer in honest_peers(swarm) if peer.metrics_port]:
        found = {name.removesuffix("_total"): float(n) for name, n in _SAMPLE.findall(page(peer))}
        print(f"{peer.name}: {', '.join(f'{n} {found[n]:,.0f}' for n in _TOLD if n in found)}")


def tally_of(swarm: LocalSwarm, name: str) -> Counter[str]:
    return Counter(tally_in(swarm.folder.data(name)))


def swarm_names(swarm: LocalSwarm) -> dict[str, str]:
    """Return how peers are called among themselves."""
    return {peer.name: peer.peer for peer in swarm.peers()}


def states(swarm: LocalSwarm) -> set[ProcessState]:
    """Return the states that honest peers are in."""
    return {peer.state for peer in honest_peers(swarm)}


def honest_peers(swarm: LocalSwarm) -> list[View]:
    return [peer for peer in swarm.peers() if peer.name not in cast.HOSTILE]


def page(peer: View) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{peer.metrics_port}/metrics") as found:
        return str(found.read().decode())


def memory(swarm: LocalSwarm) -> dict[str, int]:
    """Return the most bytes that each process of the honest peers ever had in memory."""
    found = {}
    for peer in honest_peers(swarm):
        found[f"{peer.name} {peer.pid}"] = most_of(peer.pid)
        for pid, program in swarm.started_by(peer.name).items():
            found[f"{peer.name} {program} {pid}"] = most_of(pid)
    return found


def most_of(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (most,) = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return int(most) << 10
