"""What a compute peer's process makes its answers of."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

import pytest
import torch

from giaann_p2p.model.rows import Answer, Neuron
from giaann_p2p.node.members.context import Context
from giaann_p2p.node.reading.prompting import Prompting
from giaann_p2p.node.training.compute import ComputeNode
from giaann_p2p.swarm.reading.known_rows import Known
from giaann_p2p.swarm.wire.manifest import Rules
from peers.compute.daemon import _prompted
from peers.compute.options import ComputeOptions
from tests.helpers_cut import COLUMNS
from tests.unit.node.helpers import FOUNDER, MANIFEST
from tests.unit.node.reading.test_reader_cut import MANY_BEES, MOST_BEES
from tests.unit.peers.helpers import LINK


async def nothing(prompting: Prompting) -> None:
    """Replace the warming up, which loads the parser."""


async def unknown(neurons: Sequence[Neuron], known: Known) -> Answer:
    """Return that none of the neurons has a row."""
    return [None] * len(neurons)


def test_a_prefetched_row_counts_as_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Prompting, "warm_up", nothing)
    view = SimpleNamespace(rules=Rules(4, cuts=(COLUMNS,)), me=FOUNDER.peer)
    node = cast(ComputeNode, SimpleNamespace(lookout=SimpleNamespace(view=view)))
    gate = SimpleNamespace(hear=lambda answer: None)
    around = SimpleNamespace(transport=None, manifest=MANIFEST, clock=lambda: 0.0, gate=gate)
    options, cpu = ComputeOptions(join=LINK), torch.device("cpu")

    async def story() -> None:
        async with _prompted(options, cast(Context, around), node, cpu) as (prompting, reading):
            reading._read = unknown  # type: ignore[method-assign]
            prompting.rows.ahead(MANY_BEES)
            assert prompting.rows.counters.guesses == MOST_BEES

    asyncio.run(story())
