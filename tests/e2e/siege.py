"""Everything at once for ten minutes, while memory, open files, disk and logs are watched.

    python -m tests.e2e.siege --minutes 10

The hostile members and the stranger of `hostile.cast` lie, shirk, forge and flood. A storage peer
joins and leaves each minute, under one name. Another one is killed, or stands still, and is back
after seconds. A text is learned and read all the while. Then hostile peers fall silent.

The exit code is 0 if nothing wrong was read, all that was committed is there and nothing else, no
process of an honest peer that lived through it has grown, and no folder or log is too large.
"""

import argparse
import asyncio
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path

from giaann_p2p.client.session import visit
from giaann_p2p.local.peer import ProcessState
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.swarm.wire.link import Link
from tests.e2e.growth import Grown, Growth
from tests.e2e.honest import Figures, Honest
from tests.e2e.hostile import BEGIN, cast
from tests.e2e.material import Wiki
from tests.e2e.soak import line_of
from tests.e2e.writer import settled

_STORAGES = 6
"""One lies, and one is harmed at a time."""
_READERS = 2
_SAMPLE_EVERY, _MINUTE = 5.0, 60.0
_BACK_WITHIN, _SETTLED_WITHIN = 180.0, 300.0
_BACK = (ProcessState.RUNNING, ProcessState.READY)
_AWAY = 5.0
_MOST_RESIDENT, _MOST_FILES, _MOST_TASKS = 32 << 20, 16, 16
_MOST_FOLDER, _MOST_LOG_A_MINUTE = 256 << 20, 256 << 10
_MEGABYTE = 1e6


class Siege:
    """What is done to a swarm beside what its hostile peers do, and what is seen of it."""

    def __init__(self, swarm: LocalSwarm, seed: int) -> None:
        self.done = Counter[str]()
        self.growth = Growth(swarm)
        self.folders: dict[str, int] = {}
        """The most bytes that each peer's folder ever had."""
        self._swarm, self._chance = swarm, random.Random(seed)
        self._spared = "storage-1"
        self._over = asyncio.Event()

    def end(self) -> None:
        """Come to an end; who is away comes back."""
        self._over.set()

    async def flap(self) -> None:
        """Let one storage peer join and leave each minute, by turns in good order and at once."""
        (name,) = await asyncio.to_thread(self._swarm.add, "storage")
        while not self._over.is_set():
            await self._pause(_MINUTE)
            if (await asyncio.to_thread(self._swarm.peer, name)).code is not None:
                raise AssertionError(f"{name}, which joins and leaves, has ended by itself")
            way = self._chance.choice((signal.SIGTERM, signal.SIGKILL))
            self.done["joins and leaves"] += 1
            await asyncio.to_thread(self._swarm.kill, name, way)
            await self._pause(_MINUTE / 2)
            if not self._over.is_set():
                await asyncio.to_thread(self._swarm.restart, name)
        if (await asyncio.to_thread(self._swarm.peer, name)).pid:
            await asyncio.to_thread(self._swarm.kill, name)

    async def harm(self) -> None:
        """Kill or stop one storage peer at a time, and have it back."""
        names = [f"storage-{n}" for n in range(1, _STORAGES + 1)]
        names = [name for name in names if name not in (self._spared, cast.LIAR)]
        while not self._over.is_set():
            name = self._chance.choice(names)
            if self._chance.random() < 0.5:
                self.done["kills"] += 1
                await asyncio.to_thread(self._swarm.kill, name)
                await self._pause(_AWAY)
                await asyncio.to_thread(self._swarm.restart, name)
            else:
                self.done["stops"] += 1
                await asyncio.to_thread(self._swarm.stop, name)
                await self._pause(_AWAY)
                await asyncio.to_thread(self._swarm.cont, name)
            await self._back(name)
            await self._pause(_AWAY)

    async def watch(self) -> None:
        """Look at all processes and folders for ever."""
        while True:
            await asyncio.to_thread(self.growth.look, time.monotonic())
            await asyncio.to_thread(self._look_at_folders)
            await asyncio.sleep(_SAMPLE_EVERY)

    def _look_at_folders(self) -> None:
        for peer in self._swarm.peers():
            size = size_of(self._swarm.folder.data(peer.name))
            self.folders[peer.name] = max(self.folders.get(peer.name, 0), size)

    async def _back(self, name: str) -> None:
        """Return when a peer runs again. While others come and go it is seldom ready for long."""
        until = time.monotonic() + _BACK_WITHIN
        while (peer := await asyncio.to_thread(self._swarm.peer, name)).state not in _BACK:
            assert peer.code is None, f"{name} has ended with {peer.code}"
            assert time.monotonic() < until, f"{name} is {peer.state}, and stays so"
            await asyncio.sleep(0.5)

    async def _pause(self, seconds: float) -> None:
        await asyncio.wait({asyncio.ensure_future(self._over.wait())}, timeout=seconds)


def size_of(folder: Path) -> int:
    """Return how many bytes the files below a folder have."""
    found = 0
    for file in folder.rglob("*"):
        try:
            found += file.stat().st_size if file.is_file() else 0
        except OSError:
            continue  # it has just been removed
    return found


async def besieged(swarm: LocalSwarm, siege: Siege, seconds: float, figures: Figures) -> str:
    """Let it all happen; return the digest in the end, which is that of one machine."""
    shows = partial(cast.visitors_token, swarm.folder.path)
    async with visit(Link.read(swarm.link), shows=shows) as visiting:
        wiki = Wiki(visiting.manifest.spec, visiting.manifest.layout)
        honest = Honest(visiting, wiki, swarm.folder.path.parent, 1, figures)
        await honest.learn()
        watching = asyncio.create_task(siege.watch())
        for name in cast.HOSTILE:
            await asyncio.to_thread(swarm.kill, name, BEGIN)
        async with asyncio.TaskGroup() as group:
            group.create_task(honest.teach())
            group.create_task(siege.flap())
            group.create_task(siege.harm())
            for number in range(_READERS):
                group.create_task(honest.read(number))
            await asyncio.sleep(seconds)
            honest.end()
            siege.end()
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        for name in cast.HOSTILE:
            await asyncio.to_thread(swarm.kill, name)
        return (await settled(visiting, wiki, _STORAGES - 1, _SETTLED_WITHIN)).digest


def has_grown(one: Grown) -> bool:
    """Tell whether that is more than what is stored and chance explain."""
    over = one.resident > _MOST_RESIDENT or one.files > _MOST_FILES or one.tasks > _MOST_TASKS
    return over and not one.process.startswith(cast.HOSTILE)


def faults(swarm: LocalSwarm, siege: Siege, minutes: float, figures: Figures) -> list[str]:
    """Print what was seen, and return what is too much."""
    found = [f"wrong: {what}" for what in figures.wrong]
    for one in siege.growth.grown():
        print(line_of(one))
        found += [f"{one.process} has grown"] if has_grown(one) else []
    for name, size in sorted(siege.folders.items()):
        log = (swarm.folder.path / "logs" / f"{name}.log").stat().st_size
        print(f"{name:14} folder {size / _MEGABYTE:8.2f} MB at most, log {log / 1e3:8.1f} kB")
        if name not in cast.HOSTILE:
            found += [f"{name}'s folder is too large"] if size > _MOST_FOLDER else []
            found += [f"{name}'s log"] if log > _MOST_LOG_A_MINUTE * (minutes + 1) else []
    return found


def main() -> int:
    """Run and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    folder, figures = Path(tempfile.mkdtemp(prefix="giaann-siege-")), Figures()
    peers = {**cast.PEERS, "storages": _STORAGES, "shards": 64, "profile": "words"}
    with LocalSwarm(
        folder / "swarm", **peers, entries=cast.ENTRIES, arguments=cast.ARGUMENTS
    ) as swarm:
        siege = Siege(swarm, wanted.seed)
        try:
            digest = asyncio.run(besieged(swarm, siege, 60 * wanted.minutes, figures))
        finally:
            print(f"{dict(siege.done)}\n{figures}")
            found = faults(swarm, siege, wanted.minutes, figures)
    print(f"digest {digest}, the same as one machine's")
    print("\n".join(found) or "nothing wrong, nothing lost, nothing grown")
    if found:
        print(f"the logs: {folder}/swarm/logs")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
