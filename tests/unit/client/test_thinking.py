"""Answers that a client computes itself: what it prefetches for them."""

import asyncio
from types import SimpleNamespace
from typing import cast

import torch

from giaann_p2p.client.session import Session
from giaann_p2p.client.thinking import thinking
from giaann_p2p.swarm.wire.manifest import Rules
from tests.helpers_cut import COLUMNS
from tests.unit.node.helpers import MANIFEST
from tests.unit.node.reading.test_reader_cut import MANY_BEES, MOST_BEES, Reading


def test_a_prefetched_row_counts_as_its_parts() -> None:
    reading = Reading(Rules(4, cuts=(COLUMNS,))).reader
    session = cast(Session, SimpleNamespace(reading=reading, manifest=MANIFEST))

    async def story() -> None:
        async with thinking(session, torch.device("cpu")) as ready:
            ready.rows.ahead(MANY_BEES)
            assert ready.rows.counters.guesses == MOST_BEES

    asyncio.run(story())
