"""Reads rows from their owners: the I/O for the decisions of `swarm.reading.reader`.

One of the quickest owners is asked first, and another if it is late (a hedge). A single timer is
set to the next hedge or timeout of all reads. Some or all rows may be compared between owners; an
owner that is caught returning wrong rows is named in the log.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from functools import partial

from giaann_p2p.model.rows import Answer, Neuron, Question, Row
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.net.transport import Transport
from giaann_p2p.node.calls import Calls, fail
from giaann_p2p.node.members.gate import Heard
from giaann_p2p.node.reading.noun_lists import FrequentNouns
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.reading.disputes import Lied
from giaann_p2p.swarm.reading.known_rows import NOTHING_KNOWN, Known, Marking
from giaann_p2p.swarm.reading.reader import Answered, ReadAction, Reader
from giaann_p2p.swarm.reading.row_vote import NOTHING, Verify
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.identity import name_of
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.row_mark import LEAST

_TIMEOUT, _PATIENCE = 2.0, 15.0
"""Timeout of a request to one owner, and of a whole read, in seconds."""
_MOST = (1 << 31) - 1
"""Limit of an answer's neurons, connections and bytes of text: in effect, no limit."""
_SHORTEST = 0.001
"""Minimum time to which the timer is set, in seconds."""
_MOST_NAMED = 8
"""Maximum number of shards that an error names."""


class RowReader:
    """Reads rows from their owners, with hedges and comparisons. Close it after the last read."""

    def __init__(
        self,
        transport: Transport,
        manifest: Manifest,
        others: PeersView,
        clock: Callable[[], float],
        *,
        timeout: float = _TIMEOUT,
        patience: float = _PATIENCE,
        verify: Verify = NOTHING,
        log: logging.Logger | None = None,
        on_lie: Callable[[Lied], None] = lambda _: None,
        heard: Heard = lambda _: None,
    ) -> None:
        spec = manifest.spec
        self._others = others
        limits = Limits(spec.branches, spec.segments, _MOST, _MOST, _MOST)
        self._clock, self._patience = clock, patience
        self.calls = Calls(transport, lambda: others.rules, self._failed)
        self.nouns = FrequentNouns(transport, others, clock, heard)
        """The most frequent nouns, which cannot be read from rows."""
        self.lies = 0
        """Number of times that a peer was found to return wrong rows."""
        self._on_lie = on_lie
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._log = log or logging.getLogger("giaann.node")
        marking = Marking(secrets.token_bytes())
        self._reader = Reader(limits, others, timeout, patience, verify, marking)
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        """Time by the loop's clock at which `_timer` fires; uvloop's timers may not know it."""

    def __len__(self) -> int:
        return len(self._waiting)

    def __repr__(self) -> str:
        return f"<RowReader: {len(self)} questions, {self.calls!r}>"

    @property
    def compared(self) -> int:
        """Number of rows for which a second peer was asked, too, to compare its answer."""
        return self._reader.compared

    @property
    def disputed(self) -> int:
        """Number of times that owners returned different rows, so that all were asked again."""
        return self._reader.disputes.opened

    @property
    def in_dispute(self) -> int:
        """Number of open disputes: owners returned different rows, and the liar is not known."""
        return len(self._reader.disputes)

    async def settled(self, within: float) -> bool:
        """Wait for the end of all comparisons and disputes, at most `within` seconds.

        Return False if some are still open after that time.
        """
        try:
            async with asyncio.timeout(within):
                await self._quiet.wait()
        except TimeoutError:
            return False
        return True

    async def rows(self, neurons: Sequence[Neuron], known: Known = NOTHING_KNOWN) -> Answer:
        """Return the neurons' rows in the order asked for, with None for a neuron without a row.

        `known`: rows that were read before; those that have not changed are not sent again.
        Raise Unreachable if no answer is accepted within the reader's patience.
        """
        columns = self._others.rules.columns
        if not columns:
            return await self._read(neurons, known)
        marked = columns.known(known, LEAST)
        rows = await self._read(columns.asked(neurons), marked)
        confirmed = {row.neuron for row in rows if row and row is marked.get(row.neuron)}

        def as_known(neuron: Neuron, row: Row | None) -> Row | None:
            """Return the known row itself if it was confirmed, as `_read` does for whole rows."""
            before = known.get(neuron)
            told = [part for part in columns.parts(neuron) if part in marked]
            is_known = before and row and told and confirmed.issuperset(told) and before.same(row)
            return before if is_known else row

        return list(map(as_known, neurons, columns.joined(neurons, rows)))

    async def _read(self, neurons: Sequence[Neuron], known: Known) -> Answer:
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        number, acts = self._reader.read(Question(list(neurons)), self._clock(), known)
        self._waiting[number] = future
        try:
            self._do(acts)
            return await future
        finally:
            del self._waiting[number]
            self._reader.give_up(number)
            if self._reader.idle:
                self._disarm()

    def parts_of(self, neuron: Neuron) -> int:
        """Return how many rows are read to know a neuron's row."""
        return self._others.rules.columns.parts_of(neuron)

    async def close(self) -> None:
        """End all calls to owners, and cancel the reads that wait for them."""
        for future in self._waiting.values():
            future.cancel()
        await self.calls.end()
        self._disarm()

    def _do(self, acts: list[ReadAction]) -> None:
        for act in acts:
            if isinstance(act, Call):
                self.calls.start(act, partial(self._answered, act.number))
            elif isinstance(act, Lied):
                self._complain(act)
            else:
                self._tell(act)
        (self._quiet.set if self._reader.settled else self._quiet.clear)()
        self._arm()

    def _tell(self, act: Answered) -> None:
        future = self._waiting.get(act.number)
        if future is None or future.done():
            return
        if act.rows is None:
            future.set_exception(_in_vain(act, self._patience))
        else:
            future.set_result(act.rows)

    def _complain(self, act: Lied) -> None:
        self.lies += 1
        self._on_lie(act)
        self._log.warning(
            "%s returned %s of shard %d, e.g. of concept %016x: nothing is read from it for %g s",
            name_of(act.peer),
            "less than most other owners know" if act.behind else "wrong rows",
            act.shard,
            act.neuron.concept,
            act.seconds,
        )

    def _arm(self) -> None:
        """Set the timer to the next hedge or timeout; if it fires too early, it is set again."""
        if self._reader.idle:
            return
        now = self._clock()
        wait = max(_SHORTEST, self._reader.next_tick(now) - now)
        loop = asyncio.get_running_loop()
        when = loop.time() + wait
        if self._timer is None or when < self._due:
            self._disarm()
            self._due = when
            self._timer = loop.call_at(when, self._tick)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        self._timer = None
        try:
            self._do(self._reader.tick(self._clock()))
        except Exception as error:  # noqa: BLE001  (only the waiting reads can raise it)
            self._failed(error)

    def _answered(self, number: int, answer: Message | None) -> None:
        self._do(self._reader.answered(number, answer, self._clock()))

    def _failed(self, error: BaseException) -> None:
        fail(self._waiting.values(), error)


def _in_vain(act: Answered, patience: float) -> Unreachable:
    named = act.missing[:_MOST_NAMED]
    some = ", ".join(map(str, named)) + (", ..." if act.missing[_MOST_NAMED:] else "")
    if act.disputed:
        return Unreachable(
            f"no majority of the replicas returned the same rows of {len(act.missing)} shards"
            f" ({some}) within {patience:g} s, so none is trusted: too few of the owners answer,"
            " which `giaann status` shows, or they differ, which `giaann fsck` shows; mend that,"
            " or wait, and ask again"
        )
    return Unreachable(
        f"no peer returned the rows of {len(act.missing)} shards ({some}) within {patience:g} s;"
        " `giaann status` shows which peers hold them; ask again"
    )
