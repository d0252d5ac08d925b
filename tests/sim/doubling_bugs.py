"""Mistakes that somebody might make when shards double, to be planted: each must be found."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from giaann_p2p.node.replication import storage as node_storage
from giaann_p2p.node.replication.store_writer import StoreWriter
from giaann_p2p.store import ledger
from giaann_p2p.store.memory import columns
from giaann_p2p.swarm.wire import record
from giaann_p2p.swarm.wire.actions import Apply
from tests.sim.bugs import Bug


def _lose_a_half_of_each_shard(patch: pytest.MonkeyPatch) -> None:
    right = columns.split

    def split(shard: Any, part_of: Any, parts: int) -> Iterator[Any]:
        first, *_ = right(shard, part_of, parts)
        _, *empty = right(shard, np.full_like(part_of, parts), parts)
        return iter([first, *empty])

    patch.setattr(columns, "split", split)


def _count_again_what_came_before(patch: pytest.MonkeyPatch) -> None:
    """A chunk that a shard has is new to the shard's children, if it is pushed once more."""
    double, lacking = ledger.Ledger.double, ledger.Ledger.lacking

    def doubled(self: Any, times: int) -> None:
        double(self, times)
        self.before = [*self._sets.values()]

    def lacked(self: Any, job: bytes, chunk: int, shards: Any) -> Any:
        if any((job, chunk) in chunks for chunks in getattr(self, "before", ())):
            return shards
        return lacking(self, job, chunk, shards)

    patch.setattr(ledger.Ledger, "double", doubled)
    patch.setattr(ledger.Ledger, "lacking", lacked)


def _take_half_a_shard_for_a_whole_one(patch: pytest.MonkeyPatch) -> None:
    right: Callable[..., Any] = record.recounted
    patch.setattr(
        record,
        "recounted",
        lambda shards, before, after, whole=True: right(shards, before, after, whole=False),
    )


def write_what_was_decided_before(patch: pytest.MonkeyPatch) -> None:
    """Updates of the shards before are carried out, and acknowledged by who decided them."""
    follow = node_storage.StorageNode._follow

    def followed(self: Any, then: Any, void: Any) -> None:
        past, writer = self.core, self.store_writer
        told = writer._told
        numbers = {change.number for change in writer._queue if isinstance(change, Apply)}

        def tell(number: int, error: Any) -> None:
            if number in numbers:
                self._reply(past, past.stored(number, error, self._clock()))
            else:
                told(number, error)

        writer._told = tell
        follow(self, then, void)

    patch.setattr(StoreWriter, "_void", lambda self: [])
    patch.setattr(node_storage.StorageNode, "_follow", followed)


DOUBLING_BUGS = [
    Bug("lose a half of each shard", _lose_a_half_of_each_shard),
    Bug("count again what came before", _count_again_what_came_before),
    Bug("take half a shard for a whole one", _take_half_a_shard_for_a_whole_one),
]
"""It takes a founder that doubles the number of shards to find these."""
