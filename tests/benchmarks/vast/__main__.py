"""A made-up model of a billion connections, held by four real storage peers on this machine.

    giaann solo train TEXT... --db BRAIN
    python -m tests.benchmarks.vast BRAIN --folder FOLDER [--copies 120] [--storages 4] [--filled]

The model is what the brain has learned, and copies of it (see `copies`). The storage peers start
empty, so that each knows its shards; then they are killed, their stores are filled, and they come
back. The swarm learns a text, answers prompts, loses a peer and gets it back, doubles its shards
while it answers, and learns and answers again: the same tokens as from the stores opened in one
process. 120 copies of the Bible and the Brown corpus (see `tests.benchmarks.corpora`) are a billion
connections: an hour on two cores, 5 GB of disk and 18 GB of memory.
"""

import argparse
import asyncio
import os
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import fmean, median

os.environ.setdefault("OMP_NUM_THREADS", "1")

from giaann_p2p.client.session import Session
from giaann_p2p.client.training import Trainer
from giaann_p2p.local.swarm import LocalSwarm
from tests.benchmarks.swarm.asked import Only, at_once, computing, everybody, in_turn
from tests.benchmarks.swarm.said import Said
from tests.benchmarks.swarm.swarms import visiting
from tests.benchmarks.vast.apart import answers
from tests.benchmarks.vast.filling import fill
from tests.benchmarks.vast.memory import memory
from tests.e2e.commands import reshard

PROMPTS = (
    "The government of the United",
    "In the beginning",
    "I think that",
    "She looked at the",
    "A man of the city",
    "The king said to his",
    "What is the cause of",
    "He went into the house",
    "The children were",
    "And the people of the land",
    "It is a matter of",
    "The water of the river",
)
TEXT, ANOTHER = (
    "".join(f"The captain of ship {number} sailed to {where}.\n" for number in range(300))
    for where in ("the island", "a river")
)
MOST = 40
_REPLICAS = 1
_CAPACITY = "12GiB"
_BACK_WITHIN = 3600.0
_LOOK_EVERY = 0.5
_STARTS_WITHIN = 600.0
"""Seconds within which a peer opens its store."""


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("brain", type=Path, help="of subwords; what it knows is copied")
    options.add_argument("--folder", type=Path, required=True, help="for the swarm; a new one")
    options.add_argument("--copies", type=int, default=120)
    options.add_argument("--storages", type=int, default=4)
    options.add_argument("--shards", type=int, default=1024)
    options.add_argument(
        "--filled", action="store_true", help="the folder is that of an earlier run"
    )
    chosen = options.parse_args()
    swarm = LocalSwarm(
        chosen.folder,
        storages=chosen.storages,
        computes=1,
        replicas=_REPLICAS,
        shards=chosen.shards,
        capacity=_CAPACITY,
        start_within=_STARTS_WITHIN,
        force=True,
    )
    names = [f"storage-{number + 1}" for number in range(chosen.storages)]
    with swarm:
        if not chosen.filled:
            asyncio.run(settled(swarm))
            filled(swarm, names, chosen.brain, chosen.copies)
        asyncio.run(settled(swarm))
        said = asyncio.run(measured(swarm, names))
    compared(swarm, names, said)


async def settled(swarm: LocalSwarm) -> None:
    """Wait until each shard is held by its owner alone: at first others hold it, too."""
    async with visiting(swarm) as found, asyncio.timeout(_BACK_WITHIN):
        while True:
            if all(count == _REPLICAS for count in replicas(found)):
                return
            await asyncio.sleep(_LOOK_EVERY)


def replicas(visiting: Session) -> list[int]:
    """Return how many peers have each shard ready."""
    now, shards = visiting.lookout.time(), range(visiting.gate.rules().shards)
    return [len(visiting.around.ready(shard, now)) for shard in shards]


def filled(swarm: LocalSwarm, names: list[str], brain: Path, copies: int) -> None:
    """Fill the stores of all storage peers, and have the peers back."""
    for name in names:
        swarm.kill(name)
        swarm.wait_ended(name)
    with ProcessPoolExecutor() as processes:
        stores = [swarm.folder.data(name) / "store" for name in names]
        found = processes.map(fill, stores, [brain] * len(names), [copies] * len(names))
        for name, told in zip(names, found, strict=True):
            print(f"{name}: {told}", flush=True)
    back(swarm, *names)
    print(f"memory: {memory(swarm)}", flush=True)


def back(swarm: LocalSwarm, *names: str) -> None:
    """Start peers again, and wait until they serve all their shards."""
    began = time.perf_counter()
    for name in names:
        swarm.restart(name)
    swarm.wait_ready(names, _BACK_WITHIN)
    print(f"{', '.join(names)}: back after {time.perf_counter() - began:,.0f} s", flush=True)


async def measured(swarm: LocalSwarm, names: list[str]) -> list[str]:
    """Learn, ask, lose a peer, double the shards, and learn and ask again; return the answers."""
    async with visiting(swarm) as found:
        await learn(found, TEXT)
        only = Only(computing(found)[0])
        cold = await in_turn(found, only, PROMPTS, MOST)
        warm = await in_turn(found, only, PROMPTS, MOST)
        many = await at_once(found, everybody(found), PROMPTS, MOST)
    await asyncio.to_thread(swarm.kill, names[0])
    await asyncio.to_thread(swarm.wait_ended, names[0])
    await asyncio.to_thread(back, swarm, names[0])
    await settled(swarm)
    async with visiting(swarm) as found:
        again = await in_turn(found, Only(computing(found)[0]), PROMPTS, MOST)
        meanwhile = await doubled(swarm, found)
    said = {"cold": cold, "warm": warm, "all at once": many, "after a kill": again}
    said["while shards double"] = meanwhile
    for name, one in said.items():
        print(f"{name}: {told(one)}", flush=True)
        if one.texts != cold.texts:
            raise SystemExit(f"answers {name} differ: {one.texts}, and cold {cold.texts}")
    await settled(swarm)
    async with visiting(swarm) as found:
        await learn(found, ANOTHER)
        last = await in_turn(found, Only(computing(found)[0]), PROMPTS, MOST)
    print(f"after it: {told(last)}\nmemory: {memory(swarm)}", flush=True)
    return last.texts


async def learn(visiting: Session, text: str) -> None:
    """Have the swarm learn a text."""
    trainer, began = Trainer(visiting), time.perf_counter()
    (report,) = await trainer.train(text)
    await trainer.close()
    rate = report.sentences / (time.perf_counter() - began)
    print(f"learned {report.sentences} texts: {rate:,.0f} a second", flush=True)


async def doubled(swarm: LocalSwarm, visiting: Session) -> Said:
    """Double the number of shards, and ask until each is ready; return the last answers."""
    only, shards = Only(computing(visiting)[0]), 2 * visiting.gate.rules().shards
    began, slowest = time.perf_counter(), 0.0
    signing = asyncio.create_task(
        asyncio.to_thread(reshard, swarm, "--shards", str(shards), "--yes")
    )
    while True:
        said = await in_turn(visiting, only, PROMPTS, MOST)
        slowest = max(slowest, *said.answers)
        done = signing.done() and visiting.gate.rules().shards == shards
        if done and all(count == _REPLICAS for count in replicas(visiting)):
            break
    await signing
    took = time.perf_counter() - began
    print(f"{shards} shards after {took:,.0f} s; the slowest answer took {slowest:.1f} s")
    return said


def told(said: Said) -> str:
    """Return what some answers took."""
    costs = said.costs
    return (
        f"{said.tokens} tokens, {said.rate:,.0f} a second, the first after"
        f" {median(said.first) * 1e3:,.0f} ms; a token {said.trips:.2f} round trips (at most"
        f" {said.most_trips}), {fmean(cost.nbytes for cost in costs):,.0f} bytes (at most"
        f" {max(cost.nbytes for cost in costs):,})"
    )


def compared(swarm: LocalSwarm, names: list[str], said: list[str]) -> None:
    """Answer the same prompts from the stores in this process; SystemExit if any answer differs."""
    began = time.perf_counter()
    alone = answers([swarm.folder.data(name) / "store" for name in names], PROMPTS, MOST)
    print(f"{len(alone)} answers from the stores themselves: {time.perf_counter() - began:,.0f} s")
    for prompt, ours, its in zip(PROMPTS, said, alone, strict=True):
        print(f"  {prompt}|{its}")
        if ours != its:
            raise SystemExit(f"the swarm said: {ours}")
    print("the answers are the same")


if __name__ == "__main__":
    main()
