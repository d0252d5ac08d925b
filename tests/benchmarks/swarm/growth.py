"""How training and prompts change with the number of peers, all of them on this machine."""

import asyncio
from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

import uvloop

from giaann_p2p.client.session import Session
from giaann_p2p.client.training import Trainer
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.model.spec import CHUNK
from tests.benchmarks.network.figures import Figure
from tests.benchmarks.swarm.bound import CORES
from tests.benchmarks.swarm.group import Group
from tests.benchmarks.swarm.prompting import AT_ONCE, many_cold
from tests.benchmarks.swarm.said import Said
from tests.benchmarks.swarm.swarms import REPLICAS, known, swarm_of, visiting
from tests.benchmarks.swarm.taught import Taught, taught
from tests.benchmarks.swarm.texts import again, made_up
from tests.benchmarks.swarm.usage import Usage, together


class Size(NamedTuple):
    """Of a swarm."""

    storages: int
    computes: int
    chunk: int = CHUNK

    @property
    def text(self) -> str:
        """As it is shown."""
        of = f", {self.chunk} sentences a chunk" if self.chunk != CHUNK else ""
        return f"{self.storages} storage, {self.computes} compute{of}"


class Measured(NamedTuple):
    """A swarm of some size."""

    size: Size
    taught: Sequence[Taught]
    """In each round."""
    said: Said
    usage: Usage
    """For what was said."""


_COMPUTES = (Size(3, 1), Size(3, 2), Size(3, 3), Size(3, 4))
_STORAGES = (Size(1, 2), Size(2, 2), Size(3, 2), Size(4, 2), Size(6, 2))
_CHUNKS = (Size(3, 2, 512), Size(6, 2, 512))
_CHUNKS_EACH = 12
"""Chunks of a text that is learned in larger ones; the bundled text is too short for that."""
_RUNS = (_COMPUTES, *((size,) for size in (*_STORAGES, *_CHUNKS)))
"""Storage peers that come later hold shards beside those of long standing for a while; so that this
is not measured, each number of them is another swarm."""


def grown(drawn: Iterator[str], texts: Iterator[int], epochs: int, rounds: int) -> list[Group]:
    """Measure swarms of all sizes; `drawn` are prompts of the bundled text."""
    found = [_run(sizes, drawn, texts, epochs, rounds) for sizes in _RUNS]
    by_computes, by_storages = found[0], [one for run in found[1:] for one in run]
    return [
        _group("from 1 to 4 compute peers", by_computes),
        _group(f"from 1 to 6 storage peers, {REPLICAS} replicas or as many as peers", by_storages),
    ]


def _run(
    sizes: Sequence[Size], drawn: Iterator[str], texts: Iterator[int], epochs: int, rounds: int
) -> list[Measured]:
    """Measure a swarm that grows from size to size."""
    first = sizes[0]
    with swarm_of(first.storages, first.computes, chunk=first.chunk) as swarm:
        return uvloop.run(_growing(swarm, sizes, drawn, texts, epochs, rounds))


async def _growing(
    swarm: LocalSwarm,
    sizes: Sequence[Size],
    drawn: Iterator[str],
    texts: Iterator[int],
    epochs: int,
    rounds: int,
) -> list[Measured]:
    found, last = [], sizes[0]
    async with visiting(swarm) as visit:
        trainer = Trainer(visit)
        for size in sizes:
            await _grow(visit, swarm, last, size)
            last = size
            await taught(trainer, swarm, again(next(texts)), 1)  # loads what is loaded once
            learned = [await _taught(trainer, swarm, size, texts, epochs) for _ in range(rounds)]
            said, usage = await many_cold(visit, swarm, drawn, rounds)
            found.append(Measured(size, learned, said, usage))
        await trainer.close()
    return found


async def _taught(
    trainer: Trainer, swarm: LocalSwarm, size: Size, texts: Iterator[int], epochs: int
) -> Taught:
    if size.chunk == CHUNK:
        return await taught(trainer, swarm, again(next(texts)), epochs)
    return await taught(trainer, swarm, made_up(size.chunk * _CHUNKS_EACH, next(texts)), 1)


async def _grow(visit: Session, swarm: LocalSwarm, last: Size, size: Size) -> None:
    for role, more in (
        ("storage", size.storages - last.storages),
        ("compute", size.computes - last.computes),
    ):
        if more:
            names = await asyncio.to_thread(swarm.add, role, more)
            await asyncio.to_thread(swarm.wait_ready, names)
    await known(visit, swarm)


def _group(name: str, measured: Sequence[Measured]) -> Group:
    figures = [
        figure
        for one in measured
        for figure in (
            Figure(
                f"{one.size.text}: training",
                median(learned.rate for learned in one.taught),
                "sentences/s",
            ),
            Figure(f"{one.size.text}: {AT_ONCE} prompts", one.said.rate, "tokens/s"),
        )
    ]
    return Group(f"size: {name}; prompts at once, cold", figures, "; ".join(map(_bound, measured)))


def _bound(one: Measured) -> str:
    """Say what a sentence and a token take of the processors, and how busy they were."""
    sentences = sum(learned.sentences for learned in one.taught)
    seconds = sum(learned.seconds for learned in one.taught)
    a_sentence = together(learned.usage for learned in one.taught).whole
    said, a_token = one.said, one.usage.whole
    return (
        f"{one.size.text}: processor time"
        f" {a_sentence / sentences * 1e3:.3g} ms a sentence"
        f" ({a_sentence / (CORES * seconds):.0%} busy),"
        f" {a_token / said.tokens * 1e3:.3g} ms a token"
        f" ({a_token / (CORES * said.seconds):.0%} busy)"
    )
