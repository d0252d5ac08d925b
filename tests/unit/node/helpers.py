"""A town of storage peers in one process, in made-up time, with real stores on disks in memory."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from giaann_p2p.net.clock import VirtualLoop
from giaann_p2p.net.limits import Limits, TransportLimits
from giaann_p2p.net.memory import Network
from giaann_p2p.net.memory_board import MemoryBoard
from giaann_p2p.net.streams import StreamTransport
from giaann_p2p.node.clock import Clock
from giaann_p2p.node.members.acquaintances import Acquaintances
from giaann_p2p.node.members.context import Context
from giaann_p2p.node.members.gate import Gate
from giaann_p2p.node.members.lookout import Lookout
from giaann_p2p.node.options import Options
from giaann_p2p.node.reading.reader import RowReader
from giaann_p2p.node.replication.opening import announced
from giaann_p2p.node.replication.storage import StorageNode
from giaann_p2p.sim.lessons import SPEC, Lessons, lessons_of
from giaann_p2p.store.budget import Budget
from giaann_p2p.store.codec.parcel import Limits as ParcelLimits
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.shards_on_disk import shards_on_disk
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.replication.settings import Settings
from giaann_p2p.swarm.wire.edition import Editions
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.messages import Push
from giaann_p2p.swarm.wire.shardset import packed
from giaann_p2p.swarm.wire.voucher import sealing
from tests.pushing import Pusher

LAYOUT = Layout(shards=16)
ALL = np.arange(LAYOUT.shards, dtype=np.uint16)
SHARDS_OF_ALL = packed(ALL, LAYOUT.shards)
LESSONS = Lessons(LAYOUT)
JOB = b"a job of a test."
EPOCH = 1.8e9
FOUNDER = Identity.from_seed(b"f" * 32)
MANIFEST = Manifest.founded(FOUNDER, "town", spec=SPEC, layout=LAYOUT, replicas=3)
LIMITS = TransportLimits(
    connection=Limits(longest=1 << 23, bytes_in=1 << 24, bytes_out=1 << 24), drain_within=1.0
)
GIB = 1 << 30
T = TypeVar("T")


def identity(number: int) -> Identity:
    return Identity.from_seed(bytes([number]) * 32)


def lesson(chunk: int, limits: ParcelLimits) -> Update:
    """Return what all shards learn from a chunk."""
    return Update.received(JOB, chunk, ALL, LESSONS.parcel(chunk, ALL), limits)


def taught(chunks: Iterable[int], shards: int = LAYOUT.shards) -> dict[int, int]:
    """Return the digest of each of so many shards that have learned some chunks."""
    store = Store.in_memory(SPEC, LAYOUT)
    store.hold(ALL.tolist())
    store.apply([lesson(chunk, store.limits) for chunk in chunks])
    store.double(shards)
    return dict(store.digests())


class House:
    """One storage peer, which can die and come back with its disk."""

    def __init__(self, town: "Town", number: int) -> None:
        self.town, self.number = town, number
        self.identity = identity(number)
        self.me = self.identity.peer
        self.disk = FakeDisk()
        self.error: BaseException | None = None
        self.edition = b""
        """The edition of the swarm's rules in its folder."""
        self.skew = 0.0
        """By how much its clock is wrong when it begins."""
        self.acquaintances: Path | None = None
        self.options, self.settings = town.options, town.settings

    def begin(self, opening: float = 0.0) -> None:
        """Come up, with what the disk has; to open the store takes so many seconds."""
        loop, budget = asyncio.get_running_loop(), Budget(self.town.capacity)
        if self.town.directory is not None:
            self.store = Store.at(self.town.directory / str(self.number), SPEC, LAYOUT, retain=True)
        else:
            self.store = Store.open(
                self.disk, SPEC, LAYOUT, budget=budget, retain=True, clock=loop.time
            )
        self.transport = self.town.transport(self.me)
        clock = Clock(lambda: EPOCH + self.skew + loop.time(), loop.time)
        gate = Gate(MANIFEST, self.transport, clock=clock, keep_edition=self._keep_edition)
        gate.recall_edition(self.edition)
        context = Context(
            identity=self.identity,
            manifest=MANIFEST,
            transport=self.transport,
            board=self.town.board.view(self.me),
            gate=gate,
            clock=clock,
            addresses=lambda: [f"/ip4/10.0.0.{self.number}/tcp/4100/p2p/x"],
            acquaintances=Acquaintances(self.acquaintances) if self.acquaintances else None,
            options=self.options,
            incarnation=self.town.chance.getrandbits(63),
            log=logging.getLogger(f"giaann.storage.{self.number}"),
        )
        if opening:
            self.task = loop.create_task(self._open(context, opening))
        else:
            self.node = self._node(context)
            self.task = loop.create_task(self._live())

    async def _open(self, context: Context, seconds: float) -> None:
        opening = asyncio.ensure_future(asyncio.sleep(seconds))
        await announced(context, self.town.capacity, *shards_on_disk(self.disk), opening)
        self.node = self._node(context)
        await self._live()

    def _node(self, context: Context) -> StorageNode:
        return StorageNode(context, self.store, capacity=self.town.capacity, settings=self.settings)

    def _keep_edition(self, edition: bytes) -> None:
        self.edition = edition

    async def _live(self) -> None:
        try:
            await self.node.run()
        except Exception as error:  # noqa: BLE001  (the test asks for it)
            self.error = error

    async def end(self) -> None:
        """Go, in good order."""
        await self.node.close()
        await self.task
        await self.transport.close()
        self.store.close()

    async def gone(self) -> None:
        """Wait until it has left, and close what it leaves."""
        await self.task
        await self.transport.close()
        self.store.close()

    async def die(self) -> None:
        """Be gone at once, without a word to anybody, the disk torn."""
        self.town.freeze(self)
        disk = self.disk.crash(self.town.chance)
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        self.town.network.stop(self.me)
        await self.transport.close()
        self.disk = disk

    def come_back(self) -> None:
        """Begin anew with what the disk kept."""
        self.town.freeze(self, frozen=False)
        for other in self.town.peers:
            self.town.network.reset(self.me, other)
        self.begin()


class Town:
    """Houses, the network and the board between them."""

    def __init__(self, seed: int, directory: Path | None = None) -> None:
        self.directory = directory
        """Where real stores are; without it, they are on disks in memory."""
        self.options, self.settings = Options(), Settings()
        self.capacity = GIB
        """Bytes of the memory of whoever begins."""
        self.chance = random.Random(seed)
        self.network = Network(self.chance)
        self.board = MemoryBoard(self.chance, (0.002, 0.05))
        self.houses: list[House] = []
        self.clients: list[Client] = []
        self.others: list[bytes] = []
        self.complaints: list[dict[str, Any]] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: self.complaints.append(context))

    @property
    def peers(self) -> list[bytes]:
        known = [*(house.me for house in self.houses), *(client.me for client in self.clients)]
        return known + self.others

    @property
    def alive(self) -> list[House]:
        return [house for house in self.houses if not house.task.done()]

    def transport(self, me: bytes) -> StreamTransport:
        for other in self.peers:
            for ends in ((me, other), (other, me)):
                self.network.way(*ends).latency = (0.0005, 0.01)
        return StreamTransport(self.network.node(me), LIMITS, partial(self.chance.getrandbits, 64))

    def add(self, options: Options | None = None, acquaintances: Path | None = None) -> House:
        house = House(self, len(self.houses) + 1)
        house.acquaintances = acquaintances
        house.options = options or house.options
        house.begin()
        self.houses.append(house)
        return house

    def freeze(self, house: House, frozen: bool = True) -> None:
        self.network.freeze(house.me, [peer for peer in self.peers if peer != house.me], frozen)

    async def until(
        self, holds: Callable[[], bool], within: float = 120.0, every: float = 0.1
    ) -> float:
        """Wait until something holds; return how long that took."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        while not holds():
            assert loop.time() - begun < within, [house.node for house in self.alive]
            await asyncio.sleep(every)
        return loop.time() - begun

    def settled(self) -> bool:
        """Tell whether each shard is ready where it should be, and nowhere else."""
        replicas = min(3, len(self.alive))
        shards = {house.node.core.replicas.shards for house in self.alive}
        if len(shards) > 1:
            return False
        counts = np.zeros(*shards, int)
        for house in self.alive:
            if not house.node.ready:
                return False
            counts[house.node.core.replicas.held] += 1
        return bool(np.all(counts == replicas))

    def digests(self) -> list[dict[int, int]]:
        """Return what each house has: the digests of its shards."""
        return [dict(house.store.digests()) for house in self.alive]

    def holds_what(self, chunks: Iterable[int]) -> bool:
        """Tell whether every replica has exactly what some chunks come to."""
        shards = max(house.store.layout.shards for house in self.alive)
        wanted = taught(chunks, shards)
        return all(found == {shard: wanted[shard] for shard in found} for found in self.digests())

    async def close(self) -> None:
        for client in self.clients:
            await client.close()
        for house in self.alive:
            await house.end()
        await asyncio.sleep(0.1 if self.directory else 60)  # what still flies arrives
        left = {repr(task) for task in asyncio.all_tasks() if task is not asyncio.current_task()}
        assert left == set()
        assert self.complaints == []


class Client:
    """Somebody who pushes and reads."""

    def __init__(self, town: Town, number: int = 200) -> None:
        self.town, self.me = town, identity(number).peer
        town.clients.append(self)
        loop = asyncio.get_running_loop()
        self.clock = Clock(lambda: EPOCH + loop.time(), loop.time)
        self.transport = town.transport(self.me)
        self.editions = Editions(MANIFEST)
        around = PeersView(self.me, MANIFEST.swarm_id, lambda: self.editions.rules)
        self.lookout = Lookout(
            town.board.view(self.me),
            around,
            MANIFEST.swarm_id,
            self.clock,
            options=town.options,
        )
        others = self.lookout.view
        self.pusher = Pusher(self.transport, MANIFEST, others, self.clock, identity(number))
        self.reading = RowReader(self.transport, MANIFEST, others, self.clock)
        self.task = loop.create_task(self.lookout.run())
        self.committed: list[int] = []

    def pushed(self, chunk: int) -> Push:
        """Return what brings an owner of all shards a chunk."""
        tree = LESSONS.tree(chunk)
        seal = sealing([self.pusher.vouched(JOB, chunk, tree.root)], tree)(ALL)
        return Push(JOB, chunk, SHARDS_OF_ALL, LESSONS.parcel(chunk, ALL), seal)

    async def push(self, chunk: int) -> None:
        await self.lookout.whole.wait()
        lessons = lessons_of(self.editions.rules.layout)
        await self.pusher.push(JOB, chunk, partial(lessons.parcel, chunk), lessons.tree(chunk))
        self.committed.append(chunk)

    async def push_all(self, chunks: Iterable[int], at_once: int = 3) -> None:
        """Push some chunks, a few at a time."""
        room = asyncio.Semaphore(at_once)

        async def one(chunk: int) -> None:
            async with room:
                await self.push(chunk)

        async with asyncio.TaskGroup() as group:
            for chunk in chunks:
                group.create_task(one(chunk))

    async def close(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self.reading.close()
        await self.transport.close()


class SlowLoop(VirtualLoop):
    """A loop whose threads take their time: before they do something, and before they tell."""

    def run_in_executor(
        self, executor: object, func: Callable[..., T], *args: object
    ) -> asyncio.Future[T]:
        future: asyncio.Future[T] = self.create_future()

        def tell(done: asyncio.Future[T]) -> None:
            if (error := done.exception()) is not None:
                future.set_exception(error)
            else:
                future.set_result(done.result())

        def work() -> None:
            done = VirtualLoop.run_in_executor(self, executor, func, *args)
            self.call_later(0.03, tell, done)

        self.call_later(0.03, work)
        return future


def play(
    story: Callable[[Town], Awaitable[None]],
    *,
    seed: int = 0,
    loop: type[VirtualLoop] = VirtualLoop,
) -> None:
    """Run a story in a town, and check that nothing is left of it."""

    async def main() -> None:
        town = Town(seed)
        await story(town)
        await town.close()

    told: Coroutine[Any, Any, None] = main()
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(told)
