"""A record with a chunk's delta that is at hand: where it lies, and for which shards it is kept."""

from collections.abc import Mapping
from dataclasses import dataclass

from giaann_p2p.store.disk.record import Place, size_of
from giaann_p2p.store.layout import Shards
from giaann_p2p.store.update import update_head

KEPT_BYTES = 500
"""What a record costs in memory beside its bytes."""


@dataclass(frozen=True, eq=False, slots=True)
class Kept:
    """A chunk's delta for some shards."""

    job: bytes
    chunk: int
    shards: Shards
    size: int
    """Of the record in bytes."""
    place: Place | None
    """Where it lies in the log."""
    record: bytes = b""
    """What it says, in a store without a log."""


def kept_of(record: memoryview, place: Place | None) -> Kept:
    """Return what to keep of an update's record, which lies at a place of the log, if at any."""
    size = size_of(len(record))
    return Kept(*update_head(record), size, place, b"" if place else bytes(record))


def followed(place: Place, moves: Mapping[Place, Place]) -> Place:
    """Return where a record lies that may have been moved, and moved again."""
    while place in moves:
        place = moves[place]
    return place
