"""A storage peer that tells wrong rows from its first one on, and is quicker than the others.

Below the lies it is an honest peer. Each row that it tells occurred seven times more than it did.
"""

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

import peers.storage.daemon
from giaann_p2p.local import roles
from giaann_p2p.model.rows import Neuron, Question
from giaann_p2p.node.replication.storage import StorageNode
from giaann_p2p.sim.storage import rows_of
from giaann_p2p.store.codec import plain
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import decode, encode
from giaann_p2p.swarm.wire.row_messages import Read, Rows

TELLER = "storage-2"
MORE = 7
ENTRIES = {**roles.ENTRIES, "storage": f"{__name__}:storage"}
_SLOW = 0.15
"""Seconds: more than a peer that nobody has asked yet is taken to need, so the liar is asked."""


class _Slow(StorageNode):
    """Takes its time for rows."""

    def __init__(self, *given: Any, **more: Any) -> None:  # noqa: ANN401  (what a node is given)
        super().__init__(*given, **more)
        self._honestly = self.reception.answer
        self.reception.answer = self._answer  # type: ignore[method-assign]

    def _answer(self, peer: bytes, body: bytes) -> bytes | Awaitable[bytes]:
        question = decode(body)
        if not isinstance(question, Read):
            return self._honestly(peer, body)
        return self._slowly(question, peer)

    async def _slowly(self, question: Read, peer: bytes) -> bytes:
        await asyncio.sleep(_SLOW)
        return encode(await self.answering.to(question, peer))


class Teller(_Slow):
    """See the module."""

    async def _slowly(self, question: Read, peer: bytes) -> bytes:
        said: Message = await self.answering.to(question, peer)
        if not isinstance(said, Rows):
            return encode(said)
        halves: list[Any] = [
            np.frombuffer(half, "<u8").tolist() for half in (question.concepts, question.features)
        ]
        known = rows_of(said.parcel, self._store.limits).read(Question(list(map(Neuron, *halves))))
        wrong = [replace(row, count=row.count + MORE) for row in known if row and row.count]
        return encode(Rows(plain.encode(wrong), said.moved))


def storage(arguments: list[str]) -> int:
    """Be a storage peer, or one that tells wrong rows."""
    name = Path(arguments[arguments.index("--data-dir") + 1]).parent.name
    vars(peers.storage.daemon)["StorageNode"] = Teller if name == TELLER else _Slow
    return peers.storage.daemon.main(arguments)
