r"""Churn for an hour, or as long as it is told, and a look at whether anything grows meanwhile.

    python -m tests.e2e.soak --minutes 60
    python -m tests.e2e.soak --minutes 60 --storages 90 --computes 8 --shards 64 \
        --pause 15 --rest 90 --ease 10

Peers are killed, stopped, drained and added all the while, as in test_churn.py; one storage peer
and the bootstrap peer are left alone, so that there is somebody to grow. The exit code is 0 if all
that was learned is there in the end, nothing has grown, and nothing is left of the swarm. Else the
swarm's folder, with all logs, is left.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from pathlib import Path

from giaann_p2p.client.session import visit
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.swarm.wire.link import Link
from tests.e2e.conftest import SHARDS
from tests.e2e.growth import Grown, Growth
from tests.e2e.havoc import Havoc
from tests.e2e.material import Wiki
from tests.e2e.writer import Writer
from tests.unit.local.helpers import processes_of

_LEFT_ALONE = "storage-1"
_SAMPLE_EVERY = 5.0
_REMEMBERED = "1MiB"
"""Room for released deltas: so little is full before the first comparison, and grows no more."""
_EPOCHS_A_JOB = 1 << 20
"""The list of jobs is told to peers to be kept, so it is no leak, and one job keeps it short."""
_STORY = 40
"""Lines of what was done last, told when it fails."""
_MOST_RESIDENT, _MOST_FILES, _MOST_TASKS = 12 << 20, 8, 8
_TASKS_A_STREAM = 3
_MEGABYTE = 1e6


async def churned(
    swarm: LocalSwarm, havoc: Havoc, growth: Growth, seconds: float, ease: float
) -> Writer:
    """Let a writer work while peers are harmed, and all be looked at."""
    async with visit(Link.read(swarm.link)) as visiting:
        manifest = visiting.manifest
        wiki = Wiki(manifest.spec, manifest.layout)
        writer = Writer(visiting, wiki, epochs_a_job=_EPOCHS_A_JOB, pause=ease)

        async def looking() -> None:
            while True:
                await asyncio.to_thread(growth.look, time.monotonic())
                await asyncio.sleep(_SAMPLE_EVERY)

        looks = asyncio.create_task(looking())
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(writer.run())
                await havoc.run(seconds)
                writer.end()
            await writer.settled(havoc.peers)
        finally:
            looks.cancel()
            await asyncio.gather(looks, return_exceptions=True)
        return writer


def line_of(one: Grown) -> str:
    """Return how much a process has grown."""
    return (
        f"{one.process:28} {one.seconds / 60:6.1f} min  {one.resident / _MEGABYTE:+7.2f} MB"
        f"  {one.files:+4.0f} files  {one.tasks:+4.0f} tasks"
    )


def has_grown(one: Grown, peers: int = 0) -> bool:
    """Tell whether that is more than what is stored, streams to other peers, and chance explain."""
    most_files, most_tasks = _MOST_FILES + peers, _MOST_TASKS + _TASKS_A_STREAM * peers
    return one.resident > _MOST_RESIDENT or one.files > most_files or one.tasks > most_tasks


def main() -> int:
    """Run and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--storages", type=int, default=6)
    parser.add_argument("--computes", type=int, default=0)
    parser.add_argument("--shards", type=int, default=SHARDS)
    parser.add_argument("--pause", type=float, default=2.0, help="mean seconds between two harms")
    parser.add_argument("--rest", type=float, default=0.0, help="seconds before the first harm")
    parser.add_argument("--ease", type=float, default=0.4, help="seconds between two epochs")
    told = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="giaann-soak-")) / "swarm"
    swarm = LocalSwarm(
        folder,
        profile="words",
        storages=told.storages,
        computes=told.computes,
        replicas=3,
        shards=told.shards,
        arguments={"storage": ["--remember", _REMEMBERED]},
    )
    began = time.monotonic()
    with swarm:
        print(f"ready after {time.monotonic() - began:.0f} s", flush=True)
        time.sleep(told.rest)
        havoc = Havoc(swarm, told.seed, told.pause, spare=[_LEFT_ALONE])
        growth = Growth(swarm)
        try:
            writer = asyncio.run(churned(swarm, havoc, growth, 60 * told.minutes, told.ease))
        except BaseException:
            print("\n".join([*havoc.story[-_STORY:], f"it ends here; the logs: {folder}/logs"]))
            raise
        found = list(growth.grown())
    left = processes_of(folder)
    print(f"seed {told.seed}, {told.minutes:g} minutes: {havoc}")
    print(writer.figures)
    print(f"digest {writer.wiki.digest}, the same as one machine's")
    peers = 1 + told.storages + told.computes
    grown = [one for one in found if has_grown(one, peers)]
    for one in found:
        print(line_of(one), " GROWN" if one in grown else "")
    if not found:
        print("no process lived long enough to tell whether it grows: give it ten minutes or more")
    print(f"all processes took {growth.most / 1e9:.2f} GB together, at the most")
    print(f"processes left: {len(left)}")
    if left or grown or not found:
        print(f"the logs: {folder}/logs")
        return 1
    shutil.rmtree(folder.parent)
    return 0


if __name__ == "__main__":
    sys.exit(main())
