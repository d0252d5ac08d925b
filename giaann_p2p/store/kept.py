"""An archived delta: where its record is, and which shards it is kept for."""

from collections.abc import Mapping
from dataclasses import dataclass

from giaann_p2p.store.disk.record import Place, size_of
from giaann_p2p.store.layout import Shards
from giaann_p2p.store.update import update_head

KEPT_BYTES = 500
"""Bytes of memory that each kept record takes besides the record's own bytes."""


@dataclass(frozen=True, eq=False, slots=True)
class Kept:
    """One chunk's delta, kept for some shards."""

    job: bytes
    chunk: int
    shards: Shards
    size: int
    """The size of the record in bytes."""
    place: Place | None
    """Where the record is in the log; None in a store without a log."""
    record: bytes = b""
    """The record's payload in a store without a log; otherwise empty."""


def kept_of(record: memoryview, place: Place | None) -> Kept:
    """Return the archive's entry for an update's record; `place`: None in a store without a log."""
    size = size_of(len(record))
    return Kept(*update_head(record), size, place, b"" if place else bytes(record))


def followed(place: Place, moves: Mapping[Place, Place]) -> Place:
    """Return the current place of a record, which may have been moved several times."""
    while place in moves:
        place = moves[place]
    return place
