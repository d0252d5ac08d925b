"""What storage peers on a real network do in a second, beside a bare stream of hivemind's.

    python -m tests.benchmarks.network [--only PART,...] [--chunks 100] [--seconds 3] [--rounds 3]
                                       [--json [FILE]]

Parts are pushing, reading, syncing, announcing and memory. A storage peer runs in a process of its
own, over real p2pd's on loopback; this process is its client. What other processes on the machine
do, they do to the bare stream, too: compare the ratios. All of it takes some five minutes.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Sequence
from pathlib import Path

import uvloop
from rich.console import Console

from giaann_p2p.client.session import Session, visit
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.swarm.wire.link import Link
from tests.benchmarks.network.announcing import announcements
from tests.benchmarks.network.bare import bare
from tests.benchmarks.network.figures import Figure, table, told
from tests.benchmarks.network.learned import learned
from tests.benchmarks.network.memory import memory
from tests.benchmarks.network.pushing import pushes
from tests.benchmarks.network.reading import reads
from tests.benchmarks.network.syncing import syncs

PARTS = ("pushing", "reading", "syncing", "announcing", "memory")
_SERVED_BY_ONE = {"pushing", "reading", "syncing"}
_READY_WITHIN = 60.0
_ARGUMENTS = {
    "bootstrap": ["--quorum", "1"],
    "storage": ["--capacity", "4GiB", "--bandwidth", "0"],
}


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--only", type=_parts, default=PARTS, help=",".join(PARTS))
    options.add_argument("--chunks", type=int, default=100, help="of 64 made-up sentences each")
    options.add_argument("--seconds", type=float, default=3.0, help="for each measurement")
    options.add_argument("--rounds", type=int, default=3, help="of each, median taken")
    options.add_argument("--json", nargs="?", const="-", help="print JSON, or write it to a file")
    chosen = options.parse_args()
    figures = measure(chosen)
    Console().print(table(figures))
    if chosen.json:
        text = json.dumps(told(figures), indent=2, ensure_ascii=False)
        if chosen.json == "-":
            print(text)
        else:
            Path(chosen.json).write_text(text + "\n")


def measure(chosen: argparse.Namespace) -> list[Figure]:
    """Return all figures that are wanted."""
    figures: list[Figure] = []
    if _SERVED_BY_ONE & set(chosen.only):
        with LocalSwarm(profile="words", storages=1, replicas=2, arguments=_ARGUMENTS) as swarm:
            figures += uvloop.run(_served_by_one(swarm, chosen))
    if "announcing" in chosen.only:
        figures += uvloop.run(announcements())
    if "memory" in chosen.only:
        figures += memory()
    return figures


async def _served_by_one(swarm: LocalSwarm, chosen: argparse.Namespace) -> list[Figure]:
    work = learned(chosen.chunks)
    figures: list[Figure] = []
    async with bare() as stream:
        async with visit(Link.read(swarm.link)) as visiting:
            await _until_known(visiting)
            figures += await pushes(visiting, work, chosen.rounds)
            if "reading" in chosen.only:
                (server,) = [peer.pid for peer in swarm.peers() if peer.role == "storage"]
                figures += await reads(
                    visiting, stream, work, chosen.seconds, chosen.rounds, server
                )
        if "syncing" in chosen.only:
            figures += await syncs(swarm, stream, work, chosen.seconds)
    return figures


async def _until_known(visiting: Session) -> None:
    """Wait until the peer is known to be ready with all shards."""
    shards = range(visiting.manifest.layout.shards)
    until = time.monotonic() + _READY_WITHIN
    while not all(visiting.around.ready(shard, visiting.lookout.time()) for shard in shards):
        if time.monotonic() > until:
            raise SystemExit(f"the storage peer is not ready within {_READY_WITHIN:g} s")
        await asyncio.sleep(0.1)


def _parts(text: str) -> Sequence[str]:
    parts = text.split(",")
    if wrong := sorted(set(parts) - set(PARTS)):
        raise argparse.ArgumentTypeError(f"{', '.join(wrong)}: there are {', '.join(PARTS)}")
    return parts


if __name__ == "__main__":
    main()
