"""Reading rows from whoever has them: `swarm.reader`, alive.

Quickest first, and a second peer asked when the first is late: one timer, set to when that is.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from giaann_p2p.model.rows import Answer, Neuron, Question
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.net.transport import Transport
from giaann_p2p.node.calls import Calls, fail
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.swarm.actions import Call
from giaann_p2p.swarm.manifest import Manifest
from giaann_p2p.swarm.messages import Message
from giaann_p2p.swarm.reader import Act, Others, Reader

_TIMEOUT, _PATIENCE = 2.0, 15.0
_MOST = (1 << 31) - 1
_SHORTEST = 0.001
_MOST_NAMED = 8


class Reading:
    """See the module. Close it when no more is to be read."""

    def __init__(
        self,
        transport: Transport,
        manifest: Manifest,
        others: Others,
        clock: Callable[[], float],
        *,
        timeout: float = _TIMEOUT,
        patience: float = _PATIENCE,
    ) -> None:
        spec = manifest.spec
        limits = Limits(spec.branches, spec.segments, _MOST, _MOST, _MOST)
        self._clock, self._patience = clock, patience
        self.calls = Calls(transport, self._failed)
        self._reader = Reader(manifest.layout, limits, others, timeout, patience)
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def __repr__(self) -> str:
        return f"<Reading: {len(self)} questions, {self.calls!r}>"

    async def rows(self, neurons: Sequence[Neuron]) -> Answer:
        """Return rows in the order asked for, None where there is none; Unreachable in vain."""
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        number, acts = self._reader.read(Question(list(neurons)), self._clock())
        self._waiting[number] = future
        try:
            self._do(acts)
            return await future
        finally:
            del self._waiting[number]
            self._reader.give_up(number)
            if not self._waiting:
                self._disarm()

    async def close(self) -> None:
        """End all; who waits is cancelled."""
        for future in self._waiting.values():
            future.cancel()
        await self.calls.end()
        self._disarm()

    def _do(self, acts: list[Act]) -> None:
        for act in acts:
            if isinstance(act, Call):
                self.calls.start(act, partial(self._answered, act.number))
                continue
            future = self._waiting.get(act.number)
            if future is None or future.done():
                continue
            if act.rows is None:
                future.set_exception(_in_vain(act.missing, self._patience))
            else:
                future.set_result(act.rows)
        self._arm()

    def _arm(self) -> None:
        """See to it that who is late is noticed; a timer that comes too soon is only set anew."""
        if not self._waiting:
            return
        now = self._clock()
        wait = max(_SHORTEST, self._reader.next_tick(now) - now)
        loop = asyncio.get_running_loop()
        when = loop.time() + wait
        if self._timer is None or when < self._timer.when():
            self._disarm()
            self._timer = loop.call_at(when, self._tick)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        self._timer = None
        try:
            self._do(self._reader.tick(self._clock()))
        except Exception as error:  # noqa: BLE001  (it is told to who waits, nobody else could)
            self._failed(error)

    def _answered(self, number: int, answer: Message | None) -> None:
        self._do(self._reader.answered(number, answer, self._clock()))

    def _failed(self, error: BaseException) -> None:
        fail(self._waiting.values(), error)


def _in_vain(missing: list[int], patience: float) -> Unreachable:
    some = ", ".join(map(str, missing[:_MOST_NAMED])) + (", ..." if missing[_MOST_NAMED:] else "")
    return Unreachable(
        f"no peer could tell the rows of {len(missing)} shards ({some}) within {patience:g} s;"
        " see `giaann status` for who holds them, and ask again"
    )
