"""SIGKILL at any time: what was acknowledged is there, and all that is there adds up.

GIAANN_KILLS=100 kills as often; by default it is few times.
"""

import os
import random
import time
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

from giaann_p2p.model.delta import Delta
from giaann_p2p.model.digest import digest
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.store import Store
from tests.e2e.store_writer import ACKNOWLEDGED, SHARDS, write
from tests.helpers import SMALL
from tests.helpers_store import JOB, Lesson, delta_of_rows, lessons, names_of
from tests.plain import store as plain

KILLS = int(os.environ.get("GIAANN_KILLS", "15"))
POOL = lessons(20)
NAMES = names_of(POOL)
LONGEST = 0.6
"""Seconds that a process lives, at most."""


@pytest.mark.slow
@pytest.mark.timeout(600 + 3 * KILLS)
def test_what_a_killed_process_acknowledged_is_there(tmp_path: Path) -> None:
    directory = tmp_path / "store"
    Store.at(directory, SMALL, Layout(shards=SHARDS)).close()
    context = get_context("forkserver")
    context.set_forkserver_preload(["tests.e2e.store_writer"])
    written, acknowledged, torn, snapshots = 0, set[int](), 0, set[str]()
    for kill in range(KILLS):
        # The first one is given time to load everything, for all that come after.
        acknowledged |= killed(context, directory, written, kill, 5.0 if kill == 0 else LONGEST)
        torn += ends_torn(directory)
        snapshots |= {path.name for path in directory.glob("snapshot-*")}
        with Store.at(directory) as store:
            chunks = set(store.applied(0, JOB))
            assert acknowledged <= chunks
            assert store.digest() == digest(added_up(chunks))
            for shard in store.shards.tolist():
                assert set(store.applied(shard, JOB)) == chunks
        written = max(chunks, default=-1) + 1
        assert chunks == set(range(written))
    assert written > KILLS
    print(
        f"{KILLS} kills, {written:,} chunks of which {len(acknowledged):,} were acknowledged in "
        f"time, {len(snapshots)} snapshots seen, {torn} unmarked or torn ends"
    )


def killed(
    context: ForkServerContext,
    directory: Path,
    first: int,
    seed: int,
    longest: float,
) -> set[int]:
    """Let a process write, kill it, and return the chunks that it acknowledged."""
    reading, writing = context.Pipe(duplex=False)
    process = context.Process(target=_write, args=(directory, POOL, first, seed, writing))
    process.start()
    writing.close()
    if seed == 0:
        reading.poll(30)
    time.sleep(random.Random(seed).random() * longest)
    assert process.is_alive()
    process.kill()
    process.join()
    said = b""
    while piece := os.read(reading.fileno(), 1 << 16):
        said += piece
    reading.close()
    whole = len(said) // ACKNOWLEDGED.size * ACKNOWLEDGED.size
    groups = ACKNOWLEDGED.iter_unpack(said[:whole])
    return {chunk for start, count in groups for chunk in range(start, start + count)}


def _write(
    directory: Path,
    pool: list[Lesson],
    first: int,
    seed: int,
    writing: Connection,
) -> None:
    write(directory, pool, first, seed, writing.fileno())


def ends_torn(directory: Path) -> bool:
    """Tell whether something stands behind the last mark of the newest log file."""
    newest = max(directory.glob("log-*"))
    return newest.read_bytes()[-16:-12] != b"gRc\xff"


def added_up(chunks: set[int]) -> Delta:
    """Return the sum of some chunks."""
    rows: plain.Rows = {}
    for chunk in chunks:
        plain.add(rows, POOL[chunk % len(POOL)].rows)
    return delta_of_rows(rows, NAMES)
