"""hivemind's client of p2pd goes on to read whatever becomes of a call."""

import asyncio
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest
from hivemind.p2p.p2p_daemon_bindings.control import ControlClient
from hivemind.p2p.p2p_daemon_bindings.utils import write_pbmsg
from hivemind.proto import p2pd_pb2

from giaann_p2p.net.hive.unary import Unary
from tests.unit.net.hive.helpers import Place, hosts, until
from tests.unit.net.hive.helpers_board import all_closed, board

FIELDS = [
    {"callUnaryResponse": p2pd_pb2.CallUnaryResponse(response=b"here")},
    {"callUnaryResponse": p2pd_pb2.CallUnaryResponse(error=b"failed")},
    {"daemonError": p2pd_pb2.DaemonError(message="no route")},
    {},
]


class Fed:
    """A writer that feeds what is written to a reader."""

    def __init__(self) -> None:
        self.reader = asyncio.StreamReader()
        self.write = self.reader.feed_data

    async def drain(self) -> None:
        pass


@pytest.mark.parametrize("fields", FIELDS)
def test_an_answer_to_a_call_that_was_just_cancelled_makes_no_later_one_hang(
    fields: dict[str, Any],
) -> None:
    async def story() -> None:
        control, p2pd = ControlClient(None, _initialized_with_create=True), Fed()
        control._read_task = asyncio.create_task(control._read_from_persistent_conn(p2pd.reader))
        unary = Unary(SimpleNamespace(_client=SimpleNamespace(control=control)))
        calls: dict[UUID, asyncio.Future[bytes]] = {uuid4(): asyncio.Future() for _ in range(2)}
        control._pending_calls |= calls
        (cancelled, waiting) = calls.values()
        cancelled.cancel()
        for number in calls:
            await write_pbmsg(
                p2pd, p2pd_pb2.PersistentConnectionResponse(callId=number.bytes, **fields)
            )
        await asyncio.wait({waiting, control._read_task}, return_when=asyncio.FIRST_COMPLETED)
        assert waiting.done()
        assert waiting.exception() is None or str(waiting.exception()) in ("failed", "no route")
        assert not unary.is_deaf
        control.close()

    asyncio.run(story())


def test_a_p2pd_from_which_hivemind_reads_no_more_is_restarted() -> None:
    async def story(place: Place) -> None:
        boards = [await board(place) for _ in range(2)]
        await until(lambda: all(one.nodes for one in boards))
        host = place.hosts[0]
        assert host._life is not None
        before = host._life
        unary = await before.unary()
        unary._control._read_task.cancel()
        await until(lambda: host._life is not None and host._life is not before)
        await until(lambda: all(one.nodes for one in boards))
        await all_closed(*boards)

    hosts(story)
