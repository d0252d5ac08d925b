"""A process that writes to a store as fast as it can, until it is killed."""

import os
import random
import struct
import threading
from pathlib import Path

import numpy as np

from giaann_p2p.store.memory import columns
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from tests.helpers_store import JOB, Lesson

SHARDS = 4
ACKNOWLEDGED = struct.Struct("<II")
"""The first of some chunks, and how many they are."""


def write(directory: Path, pool: list[Lesson], first: int, seed: int, said: int) -> None:
    """Take in chunk after chunk from `first` on, and say on a pipe which are acknowledged."""
    columns._LEAST_PENDING = 2000
    rng = random.Random(seed)
    store = Store.at(directory)
    store.hold(range(SHARDS))
    threading.Thread(target=snapshots, args=(store, rng.random() / 20), daemon=True).start()
    while True:
        chunks = range(first, first + rng.choice([1, 1, 2, 5]))
        store.apply([update(pool, chunk) for chunk in chunks])
        os.write(said, ACKNOWLEDGED.pack(first, len(chunks)))
        first = chunks.stop


def update(pool: list[Lesson], chunk: int) -> Update:
    return Update(JOB, chunk, np.arange(SHARDS, dtype=np.uint16), pool[chunk % len(pool)].delta)


def snapshots(store: Store, pause: float) -> None:
    """Make a snapshot, now and then, while chunks come."""
    waiting = threading.Event()
    while not waiting.wait(pause):
        store.snapshot()
