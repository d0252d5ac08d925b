"""What a user of a swarm gets, beside one machine, and what bounds it.

    python -m tests.benchmarks.swarm [--only PART,...] [--epochs 5] [--rounds 3] [--json [FILE]]

Parts are training, prompts, pushed, growth and delay. All swarms are of real processes on this
machine, over p2pd's on loopback; this process is their client, and the one machine that they are
held to. What other processes do on the machine, they do to both: compare the ratios. All of it
takes some five minutes.
"""

import argparse
import itertools
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
import uvloop
from rich.console import Console

from giaann_p2p.client.training import Trainer
from giaann_p2p.local.swarm import LocalSwarm
from tests.benchmarks.network.bare import bare
from tests.benchmarks.swarm.group import Group, show, told
from tests.benchmarks.swarm.growth import grown
from tests.benchmarks.swarm.prompting import drawn_from, prompted
from tests.benchmarks.swarm.pushed import pushes
from tests.benchmarks.swarm.solo import Solo, solo
from tests.benchmarks.swarm.swarms import swarm_of, visiting
from tests.benchmarks.swarm.taught import taught
from tests.benchmarks.swarm.texts import again
from tests.benchmarks.swarm.training import trains

PARTS = ("training", "prompts", "pushed", "growth", "delay")
_NEAR = {"training", "prompts", "pushed"}
_STORAGES, _COMPUTES = 3, 2
_DELAY = 0.01


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--only", type=_parts, default=PARTS, help=",".join(PARTS))
    options.add_argument("--epochs", type=int, default=5, help="of the bundled text, each round")
    options.add_argument("--rounds", type=int, default=3, help="of each, median taken")
    options.add_argument("--json", nargs="?", const="-", help="print JSON, or write it to a file")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    console, groups = Console(), []
    for group in measure(chosen):
        groups.append(group)
        show(group, console)
    if chosen.json:
        text = json.dumps(told(groups), indent=2, ensure_ascii=False)
        if chosen.json == "-":
            print(text)
        else:
            Path(chosen.json).write_text(text + "\n")


def measure(chosen: argparse.Namespace) -> Iterator[Group]:
    """Return all groups that are wanted, as they come."""
    texts = itertools.count(1)  # no text twice: it would be known
    with solo() as alone:
        alone.train(again(0), 1)
        drawn = drawn_from(alone)
        if _NEAR & set(chosen.only):
            with swarm_of(_STORAGES, _COMPUTES) as swarm:
                yield from uvloop.run(_near(swarm, alone, drawn, texts, chosen))
        if "growth" in chosen.only:
            yield from grown(drawn, texts, chosen.epochs, chosen.rounds)
        if "delay" in chosen.only:
            with swarm_of(_STORAGES, _COMPUTES, _DELAY) as swarm:
                yield from uvloop.run(_far(swarm, alone, drawn, texts, chosen))


async def _near(
    swarm: LocalSwarm,
    alone: Solo,
    drawn: Iterator[str],
    texts: Iterator[int],
    chosen: argparse.Namespace,
) -> list[Group]:
    groups = []
    async with visiting(swarm) as visit:
        trainer = Trainer(visit)
        await taught(trainer, swarm, again(0), 1)
        if "training" in chosen.only:
            groups.append(await trains(trainer, swarm, alone, texts, chosen.epochs, chosen.rounds))
        if "prompts" in chosen.only:
            async with bare() as stream:
                groups += await prompted(visit, swarm, alone, drawn, stream, chosen.rounds)
        if "pushed" in chosen.only:
            groups.append(await pushes(trainer, visit, swarm, texts, chosen.rounds))
        await trainer.close()
    return groups


async def _far(
    swarm: LocalSwarm,
    alone: Solo,
    drawn: Iterator[str],
    texts: Iterator[int],
    chosen: argparse.Namespace,
) -> list[Group]:
    where = f", {_DELAY * 1e3:g} ms between any two peers"
    async with visiting(swarm) as visit:
        trainer = Trainer(visit)
        await taught(trainer, swarm, again(0), 1)
        training = await trains(trainer, swarm, alone, texts, chosen.epochs, chosen.rounds, where)
        prompts = await prompted(visit, swarm, alone, drawn, None, chosen.rounds, where)
        await trainer.close()
    return [training, *prompts]


def _parts(text: str) -> Sequence[str]:
    parts = text.split(",")
    if wrong := sorted(set(parts) - set(PARTS)):
        raise argparse.ArgumentTypeError(f"{', '.join(wrong)}: there are {', '.join(PARTS)}")
    return parts


if __name__ == "__main__":
    main()
