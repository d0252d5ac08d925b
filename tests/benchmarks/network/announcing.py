"""Announcing costs the same, however much a peer holds: counted with few columns and with many.

Both peers run side by side in this process, each in a swarm of its own over real p2pd's, with what
they hold in memory already: what is counted is what goes on for ever.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from giaann_p2p.model.delta import Delta
from giaann_p2p.model.ids import PRIME, word_id
from giaann_p2p.net.board import Board
from giaann_p2p.net.hive.board import HiveBoard
from giaann_p2p.net.hive.config import HostConfig
from giaann_p2p.node.clock import Clock
from giaann_p2p.node.members.dht_board import dht_board
from giaann_p2p.node.members.gate import Gate
from giaann_p2p.node.members.joined_host import joined_host
from giaann_p2p.node.replication.storage import StorageNode
from giaann_p2p.store.layout import Shards
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from giaann_p2p.swarm.replication.settings import Settings
from giaann_p2p.swarm.wire.edition import rules_of
from giaann_p2p.swarm.wire.identity import Identity, Peer
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.record import Role
from tests.benchmarks.network.figures import Figure
from tests.benchmarks.targets import Target

COLUMNS = (1_000, 1_000_000)
_SECONDS = 90.0
"""Three times what lies between two announcements of the same."""
_READY_WITHIN = 60.0
_PAUSE, _SETTLE = 0.1, 2.0
_HERE = HostConfig(listen=("/ip4/127.0.0.1/tcp/0",))
_CAPACITY = 8 << 30


class _Counted:
    """A board that counts what is left on it."""

    def __init__(self, board: Board) -> None:
        self.stores = 0
        self._board = board

    async def post(self, role: Role, record: bytes, lifetime: float) -> None:
        self.stores += 1
        await self._board.post(role, record, lifetime)

    def held(self, role: Role) -> list[bytes]:
        return self._board.held(role)

    def forget(self) -> None:
        self._board.forget()

    def missed(
        self,
        live: int,
        overdue: Callable[[Role, float], Collection[Peer]],
        strange: Collection[int],
    ) -> bool:
        return self._board.missed(live, overdue, strange)

    async def look(self, role: Role) -> list[list[bytes]]:
        return await self._board.look(role)


async def announcements(seconds: float = _SECONDS) -> list[Figure]:
    """Count at all sizes at once."""
    logging.getLogger("giaann.storage").setLevel(logging.ERROR)
    stores = await asyncio.gather(*[_stores(columns, seconds) for columns in COLUMNS])
    figures = [
        Figure(f"announcing {columns:,} columns", count * 60 / seconds, "DHT stores/min")
        for columns, count in zip(COLUMNS, stores, strict=True)
    ]
    differ = float(max(stores) - min(stores))
    return [*figures, Figure("announcing: difference", differ, "DHT stores", Target(most=0))]


async def _stores(columns: int, seconds: float) -> int:
    manifest = Manifest.founded(
        Identity.from_seed(secrets.token_bytes(32)), "announcing", replicas=1
    )
    store = await asyncio.to_thread(_filled, manifest, columns)
    with TemporaryDirectory(prefix="g") as name:
        async with (
            _board(Path(name, "other.key"), manifest, ()) as (_, seeds),
            _running(Path(name, "peer.key"), manifest, store, seeds) as board,
        ):
            before = board.stores
            await asyncio.sleep(seconds)
            return board.stores - before


def _filled(manifest: Manifest, columns: int) -> Store:
    """Return a store with so many columns of one row each."""
    store = Store.in_memory(manifest.spec, manifest.layout)
    every: Shards = np.arange(manifest.layout.shards).astype(np.uint16)
    store.hold(every.tolist())
    names = {word_id(f"column{number}"): f"column{number}" for number in range(columns)}
    concept = np.sort(np.fromiter(names, np.uint64, len(names)))
    none = np.empty(0, np.uint8)
    delta = Delta(
        concept,
        np.full(len(concept), PRIME, np.uint64),
        np.ones(len(concept), np.int64),
        np.zeros(len(concept) + 1, np.int64),
        np.empty(0, np.int32),
        none,
        none,
        np.empty(0, np.int64),
        names,
    )
    store.apply([Update(secrets.token_bytes(16), 0, every, delta)])
    return store


@asynccontextmanager
async def _running(
    key: Path, manifest: Manifest, store: Store, seeds: Sequence[str]
) -> AsyncIterator[_Counted]:
    """Be a storage peer that has told all it has to tell at first."""
    async with joined_host(key, _HERE, seeds) as place:
        gate = Gate(manifest, place.transport)
        async with dht_board(place, manifest, gate) as joined:
            board = _Counted(joined)
            given = place.context(manifest, gate, logging.getLogger("giaann.storage"), board)
            context = replace(given, addresses=lambda: place.host.addresses)
            settings = Settings(patience=1.0)
            node = StorageNode(context, store, capacity=_CAPACITY, settings=settings)
            living = asyncio.create_task(node.run())
            try:
                until = time.monotonic() + _READY_WITHIN
                while not node.ready or not board.stores:
                    if time.monotonic() > until:
                        raise SystemExit(f"a peer is not ready within {_READY_WITHIN:g} s")
                    await asyncio.sleep(_PAUSE)
                await asyncio.sleep(_SETTLE)
                yield board
            finally:
                await node.close()
                await living


@asynccontextmanager
async def _board(
    key: Path, manifest: Manifest, seeds: Sequence[str]
) -> AsyncIterator[tuple[HiveBoard, Sequence[str]]]:
    """Be a node of the board that holds no column."""
    async with joined_host(key, _HERE, seeds) as place:
        board = await HiveBoard.start(
            place.host,
            manifest.swarm_id,
            lambda: rules_of(manifest, None),
            place.book.seeds,
            Clock(),
        )
        try:
            yield board, place.host.addresses
        finally:
            await board.close()
