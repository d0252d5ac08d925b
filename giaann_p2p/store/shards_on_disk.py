"""Finds out quickly which shards a store's files hold.

Opening a large store takes minutes; meanwhile, a peer announces the shards that it will have. So
this module reads only the heads of records. It verifies nothing, and stops reading a file at any
damage; opening the store reports the damage.
"""

import contextlib
from collections.abc import Callable, Iterator

import numpy as np

from giaann_p2p.errors import DamagedError
from giaann_p2p.store import home, snapshot
from giaann_p2p.store.disk.files import Files
from giaann_p2p.store.disk.record import HEAD_SIZE, HEADER_SIZE, head_of, size_of
from giaann_p2p.store.disk.replay import file_name, file_numbers
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.store.records import HEAD_LENGTH, Kind, doubled_to, shards_in, shards_of


def shards_on_disk(files: Files) -> tuple[Shards, Layout]:
    """Return the shards that a store's files hold, ascending, and the layout that numbers them."""
    layout, held = home.read(files).layout, np.empty(0, np.uint16)
    newest = snapshot.newest(files)
    names = [] if newest is None else [snapshot.name_of(newest)]
    names += [file_name(number) for number in file_numbers(files) if number >= (newest or 1)]
    for kind, numbers in (one for name in names for one in _records(files, name)):
        if kind == Kind.DOUBLE:
            doubled = layout.with_shards(*numbers)
            layout, held = doubled, layout.cover(held, doubled)
        else:
            change = np.setdiff1d if kind == Kind.DROP else np.union1d
            held = change(held, np.array(numbers, np.uint16))
    return held[held < layout.shards], layout


def _records(files: Files, name: str) -> Iterator[tuple[int, list[int]]]:
    """Yield the kind of each record that states shard numbers, and these numbers."""
    at = HEADER_SIZE
    with contextlib.suppress(DamagedError):
        while head := head_of(files.read(name, HEAD_SIZE, at)):
            length, start = head.length, at + HEAD_SIZE
            if head.kind == Kind.CONTENT:
                length = HEAD_LENGTH + _number(files.read(name, HEAD_LENGTH, start))
            if decoded := _DECODED.get(head.kind):
                yield head.kind, decoded(memoryview(files.read(name, length, start)))
            at += size_of(head.length)


_DECODED: dict[int, Callable[[memoryview], list[int]]] = {
    Kind.HOLD: shards_of,
    Kind.DROP: shards_of,
    Kind.CONTENT: shards_in,
    Kind.DOUBLE: lambda record: [doubled_to(record)],
}


def _number(data: bytes) -> int:
    return int.from_bytes(data, "little")
