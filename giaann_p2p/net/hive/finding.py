"""The records that the answers to one search contain, by the node that sent them.

1. From each node, no more records of a place are kept than an honest node can have (see shelf.py).
2. The total is bounded as well. Above the bound, the records of the node that sent most are halved.
   This loses little, because all nodes of a swarm have much the same records, unless one sends far
   more.
"""

from collections.abc import Iterable
from itertools import chain
from typing import Any

import msgspec

from giaann_p2p.net.hive.shelf import MOST_PLACE
from giaann_p2p.swarm.wire.pulse import apart

MOST_FOUND = 1 << 26
"""The most bytes of all answers to one search: eight times a full directory."""
_OWN = 1 << 15
"""The most bytes of a node's own record, which it keeps in addition to those of others."""
_LEAST = 128
"""The minimum bytes that are counted for a record or a bare pulse, because it takes that memory."""


class _Brought(msgspec.Struct):
    places: dict[bytes, list[bytes]]
    size: int = 0


class Finding:
    """The answers to one search; their memory is bounded per node and in all."""

    def __init__(self, keys: Iterable[bytes], most: int = MOST_FOUND) -> None:
        self.keys = frozenset(keys)
        self.answers = 0
        """The number of answers so far, counted once for each key that they cover."""
        self.cut: dict[Any, list[bytes]] = {}
        """For each node, the keys whose records did not fit into its answer."""
        self._most = most
        self._nodes: dict[Any, _Brought] = {}

    def __repr__(self) -> str:
        return f"<Finding: {len(self._nodes)} nodes brought {self._size:,} bytes>"

    def take(self, node: Any, key: bytes, records: list[bytes]) -> None:  # noqa: ANN401
        """Keep a node's records of a place, in place of those that the node sent before.

        Batches are taken apart, so that each pulse counts.
        """
        brought = self._nodes.setdefault(node, _Brought({}))
        brought.places[key] = _as_many_as_fit(chain.from_iterable(map(apart, records)))
        _weigh(brought)
        while self._size > self._most:
            most = max(self._nodes.values(), key=lambda brought: brought.size)
            most.places = {key: some[: len(some) // 2] for key, some in most.places.items()}
            _weigh(most)

    def brought(self) -> list[list[bytes]]:
        """Return the records found, one list per node."""
        nodes = self._nodes.values()
        return [[one for some in node.places.values() for one in some] for node in nodes]

    @property
    def _size(self) -> int:
        return sum(brought.size for brought in self._nodes.values())


def _as_many_as_fit(records: Iterable[bytes]) -> list[bytes]:
    room, kept = MOST_PLACE + _OWN, list[bytes]()
    for record in records:
        room -= _size_of(record)
        if room < 0:
            break
        kept.append(record)
    return kept


def _weigh(brought: _Brought) -> None:
    brought.size = sum(map(_size_of, (one for some in brought.places.values() for one in some)))


def _size_of(record: bytes) -> int:
    return max(len(record), _LEAST)
