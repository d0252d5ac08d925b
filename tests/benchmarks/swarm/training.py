"""Sentences a second through a swarm, beside one machine alone and the reference."""

from collections.abc import Iterator
from statistics import median

from giaann_p2p.client.training import Trainer
from giaann_p2p.local.swarm import LocalSwarm
from tests.benchmarks.model import REFERENCE
from tests.benchmarks.network.figures import Figure
from tests.benchmarks.swarm.bound import processor
from tests.benchmarks.swarm.group import Group
from tests.benchmarks.swarm.solo import Solo
from tests.benchmarks.swarm.taught import Taught, asked_again, taught
from tests.benchmarks.swarm.texts import again
from tests.benchmarks.swarm.usage import together
from tests.benchmarks.targets import Target

_FAST = Target(least=300)
_THE_REFERENCE = REFERENCE["parse + learn"]


async def trains(
    trainer: Trainer,
    swarm: LocalSwarm,
    solo: Solo,
    texts: Iterator[int],
    epochs: int,
    rounds: int,
    where: str = "",
) -> Group:
    """Have the bundled text learned so often, in turns with one machine.

    `texts` gives numbers that no text had before.
    """
    await taught(trainer, swarm, again(next(texts)), 1)  # loads what is loaded once
    solo.train(again(next(texts)), 1)
    ours: list[Taught] = []
    theirs: list[float] = []
    asking: list[float] = []
    for _ in range(rounds):
        number = next(texts)
        theirs.append(solo.train(again(number), epochs))
        ours.append(await taught(trainer, swarm, again(number), epochs))
        asking.append(await asked_again(trainer, again(number), epochs))
    title = f"training{where}: the bundled text, {epochs} epochs one after the other"
    figures = _figures(ours, theirs)
    figures.append(
        Figure("an epoch of which all is known: owners are asked", median(asking) * 1e3, "ms")
    )
    return Group(title, figures, f"{_processor(ours)}; {_asking(ours, asking)}")


def _processor(ours: list[Taught]) -> str:
    """Say what bounds it."""
    sentences = sum(one.sentences for one in ours)
    seconds = sum(one.seconds for one in ours)
    return processor(together([one.usage for one in ours]), sentences, seconds, "sentence")


def _asking(ours: list[Taught], asking: list[float]) -> str:
    epoch = median(one.seconds / one.epochs for one in ours)
    share = median(asking) / epoch
    return f"asking owners what they know takes {share:.0%} of an epoch, before it and behind it"


def _figures(ours: list[Taught], theirs: list[float]) -> list[Figure]:
    rate, alone = median(one.rate for one in ours), median(theirs)
    ratio = median(one.rate / its for one, its in zip(ours, theirs, strict=True))
    epoch = median(one.seconds / one.epochs for one in ours)
    pushed = median(one.bytes_each for one in ours)
    return [
        Figure("through the swarm", rate, "sentences/s", _FAST),
        Figure("one machine alone, durable on its disk, one process", alone, "sentences/s"),
        Figure("the swarm, of one machine alone", ratio, "x"),
        Figure("the reference, on a machine of this kind", _THE_REFERENCE, "sentences/s"),
        Figure("the swarm, of the reference", rate / _THE_REFERENCE, "x"),
        Figure("an epoch", epoch * 1e3, "ms"),
        Figure("sent by the learner", pushed, "bytes a sentence"),
    ]
