"""A text is learned by a swarm as by one machine while the number of its shards doubles."""

import asyncio

import pytest

from giaann_p2p.client.training import TrainOptions
from giaann_p2p.model.ids import word_id
from giaann_p2p.model.rows import Neuron
from giaann_p2p.node.members.gate import Gate
from giaann_p2p.swarm.wire.edition import Edition
from tests.unit.client.test_training import TEXT, founded, holds
from tests.unit.node.helpers import FOUNDER, LAYOUT, MANIFEST, Town, play
from tests.unit.node.training.helpers_compute import Visitor, Workshop

NEURONS = [Neuron(word_id(noun), word_id("make")) for noun in ("bee", "hive", "poet", "garden")]
SHARDS = 8 * LAYOUT.shards


async def double(gate: Gate) -> None:
    """Let one peer know of more shards, twice, while chunks are learned and pushed."""
    for number, shards in ((1, 2 * LAYOUT.shards), (2, SHARDS)):
        await asyncio.sleep(0.7)
        edition = Edition.signed(FOUNDER, MANIFEST.swarm_id, number, 3, shards=shards)
        gate.learn_edition(edition.to_bytes())


async def read(visitor: Visitor) -> None:
    """Read rows all the time."""
    while True:
        await visitor.visit.rows(NEURONS)
        await asyncio.sleep(0.1)


@pytest.mark.parametrize("redundancy", [1, 2])
@pytest.mark.parametrize("first", ["storage", "compute", "client"])
def test_a_text_is_learned_as_by_one_while_shards_double(first: str, redundancy: int) -> None:
    """`first`: who knows of the editions first. No honest peer is called a liar."""

    async def story(town: Town) -> None:
        visitor = await founded(town, 4)
        shops = [Workshop(town, number) for number in (101, 102, 103)]
        await town.until(lambda: len(visitor.workers()) == len(shops))
        gates = {
            "storage": town.houses[0].node.gate,
            "compute": shops[0].node.gate,
            "client": visitor.visit.gate,
        }
        options = TrainOptions(batch=4, check=1.0, redundancy=redundancy)
        others = [asyncio.create_task(one) for one in (double(gates[first]), read(visitor))]
        try:
            (report,) = await visitor.trainer.train(TEXT, options)
        finally:
            for one in others:
                one.cancel()
            done = await asyncio.gather(*others, return_exceptions=True)
        assert done[0] is None
        assert isinstance(done[1], asyncio.CancelledError)
        assert report.complete
        assert (report.chunks, report.liars) == (10, set())
        await town.until(lambda: all(one.store.layout.shards == SHARDS for one in town.houses))
        await town.until(holds(town, TEXT))
        for shop in shops:
            await shop.end()
        await visitor.close()

    play(story)
