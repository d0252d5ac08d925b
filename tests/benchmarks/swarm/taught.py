"""A text learned by a swarm, timed where its user sits."""

import time
from typing import NamedTuple

from giaann_p2p.client.trained import TrainReport as Report
from giaann_p2p.client.training import PolicyName, Trainer, TrainOptions
from giaann_p2p.local.swarm import LocalSwarm
from tests.benchmarks.swarm.usage import Usage, between, taken


class Taught(NamedTuple):
    """What it came to."""

    sentences: int
    epochs: int
    seconds: float
    pushed: int
    """Bytes that were brought to owners."""
    usage: Usage
    """Processor time meanwhile."""

    @property
    def rate(self) -> float:
        """Sentences a second."""
        return self.sentences / self.seconds

    @property
    def bytes_each(self) -> float:
        """Bytes pushed a sentence."""
        return self.pushed / self.sentences


async def taught(
    trainer: Trainer,
    swarm: LocalSwarm,
    text: str,
    epochs: int,
    policy: PolicyName = "overlap",
) -> Taught:
    """Have a text learned that the swarm does not know yet."""
    before, began = taken(swarm), time.perf_counter()
    reports = await trainer.train(text, TrainOptions(epochs=epochs, policy=policy))
    seconds = time.perf_counter() - began
    _check(reports)
    sentences = sum(report.sentences for report in reports)
    pushed = sum(report.pushed for report in reports)
    return Taught(sentences, epochs, seconds, pushed, between(before, taken(swarm)))


async def asked_again(trainer: Trainer, text: str, epochs: int) -> float:
    """Return the seconds of an epoch of which all is known: its owners are asked, and no more."""
    began = time.perf_counter()
    reports = await trainer.train(text, TrainOptions(epochs=epochs))
    if not all(report.known for report in reports):
        raise SystemExit("a text was not known that was just learned")
    return (time.perf_counter() - began) / epochs


def _check(reports: list[Report]) -> None:
    if any(report.chunks_known or not report.complete for report in reports):
        raise SystemExit("a text was known already, or was not learned whole: figures mean nothing")
