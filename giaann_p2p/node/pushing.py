"""Bringing chunks to their owners: `swarm.writer`, alive.

A push returns once enough owners of every shard have the chunk on their disks; the calls to the
other owners go on. A push that is cancelled is given up, with its calls, unless somebody else waits
for the same chunk.
"""

import asyncio
from collections.abc import Callable
from functools import partial

from giaann_p2p.errors import UsageError
from giaann_p2p.net.transport import Transport
from giaann_p2p.node.calls import Calls, fail
from giaann_p2p.node.rules import Rules
from giaann_p2p.store.applied import JOB_BYTES, WITHDRAWN
from giaann_p2p.store.seal import Tree
from giaann_p2p.swarm.actions import Call
from giaann_p2p.swarm.messages import Message, Push
from giaann_p2p.swarm.voucher import Vouch, sealing
from giaann_p2p.swarm.writer import Act, Committed, Cut, Others, Writer

_TICK = 0.25
_TIMEOUT = 4.0

Key = tuple[bytes, int]


class Pushing:
    """See the module. One for all jobs; close it when no more is to be pushed."""

    def __init__(
        self,
        transport: Transport,
        rules: Rules,
        others: Others,
        clock: Callable[[], float],
        vouch: Vouch,
        *,
        timeout: float = _TIMEOUT,
    ) -> None:
        self._clock, self._vouch = clock, vouch
        self._calls = Calls(transport, self._failed)
        self._writer = Writer(rules.shards, rules.quorum, others, timeout)
        self._waiting: dict[Key, list[asyncio.Future[None]]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def __repr__(self) -> str:
        return f"<Pushing: {len(self)} chunks, {self._calls!r}>"

    async def push(self, job: bytes, chunk: int, cut: Cut, tree: Tree) -> None:
        """Return when a chunk is committed; `cut` makes the parcel of its rows for some shards.

        `tree` is that of its delta's digests, which this peer signs.

        UsageError for what no owner takes: it would be tried for ever.
        """
        _check(job, chunk)
        key = job, chunk
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, []).append(future)
        try:
            seal = sealing([self._vouch(job, chunk, tree.root)], tree)
            self._do(self._writer.push(job, chunk, cut, seal, self._clock()))
            self._arm()
            await future
        finally:
            self._leave(key, future)

    async def close(self) -> None:
        """End all; who waits is cancelled."""
        for futures in list(self._waiting.values()):
            for future in futures:
                future.cancel()
        if self._timer is not None:
            self._timer.cancel()
        await self._calls.end()

    def _leave(self, key: Key, future: asyncio.Future[None]) -> None:
        left = [other for other in self._waiting.get(key, []) if other is not future]
        if left:
            self._waiting[key] = left
        elif self._waiting.pop(key, None) is not None:
            self._writer.give_up(*key)
            self._calls.cancel(partial(_brings, key))

    def _tick(self) -> None:
        self._timer = None
        try:
            self._do(self._writer.tick(self._clock()))
        except Exception as error:  # noqa: BLE001  (it is told to who waits, nobody else could)
            self._failed(error)
        self._arm()

    def _arm(self) -> None:
        if self._timer is None and self._waiting:
            self._timer = asyncio.get_running_loop().call_later(_TICK, self._tick)

    def _do(self, acts: list[Act]) -> None:
        for act in acts:
            if isinstance(act, Committed):
                for future in self._waiting.pop((act.job, act.chunk), []):
                    if not future.done():
                        future.set_result(None)
            else:
                self._calls.start(act, partial(self._answered, act.number))

    def _answered(self, number: int, answer: Message | None) -> None:
        self._do(self._writer.answered(number, answer, self._clock()))

    def _failed(self, error: BaseException) -> None:
        fail([one for futures in self._waiting.values() for one in futures], error)


def _brings(key: Key, call: Call) -> bool:
    return isinstance(call.message, Push) and (call.message.job, call.message.chunk) == key


def _check(job: bytes, chunk: int) -> None:
    if len(job) != JOB_BYTES:
        raise UsageError(f"a job is named by {JOB_BYTES} bytes, not {len(job)}")
    if not 0 <= chunk < WITHDRAWN:
        raise UsageError(f"chunks are numbered from 0 to 2^31 - 1, not {chunk}")
