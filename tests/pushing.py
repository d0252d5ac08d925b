"""Pushes chunks that nobody has to learn: the rows are there already, as tests made them."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Self

from giaann_p2p.client.session import Session
from giaann_p2p.net.transport import Transport
from giaann_p2p.node.calls import Calls, fail
from giaann_p2p.store.seal import Tree
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.training.pushed_chunk import Cut
from giaann_p2p.swarm.training.writer import Committed, WriteAction, Writer
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.voucher import Voucher, sealing, vouched

_TICK = 0.25
_TIMEOUT = 4.0


class Pusher:
    """Pushes chunks as a compute peer does, under its own name, without learning anything."""

    def __init__(
        self,
        transport: Transport,
        manifest: Manifest,
        others: PeersView,
        clock: Callable[[], float],
        identity: Identity,
        token: bytes = b"",
    ) -> None:
        self._transport, self._manifest, self._others = transport, manifest, others
        self._clock, self.identity, self._token = clock, identity, token

    @classmethod
    def of(cls, visiting: Session) -> Self:
        """Return what pushes under the name of a session."""
        return cls(
            visiting.place.transport,
            visiting.manifest,
            visiting.around,
            visiting.clock,
            visiting.place.host.identity,
            visiting.gate.token,
        )

    def vouched(self, job: bytes, chunk: int, root: bytes) -> Voucher:
        """Sign a voucher for a chunk, whose delta has the hash tree root `root`."""
        return vouched(self.identity, self._manifest.swarm_id, job, chunk, root, self._token)

    async def push(self, job: bytes, chunk: int, cut: Cut, tree: Tree) -> None:
        """Return when a chunk is committed; the calls to the other owners go on.

        `cut` makes the parcel with its rows for some shards, `tree` is over their digests.
        """
        committed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        writer = Writer(self._others, _TIMEOUT)
        rules = lambda: self._others.rules  # noqa: E731
        calls = Calls(self._transport, rules, lambda error: fail([committed], error))

        def do(acts: list[WriteAction]) -> None:
            for act in acts:
                if not isinstance(act, Committed):
                    calls.start(act, partial(answered, act.number))
                elif not committed.done():
                    committed.set_result(None)

        def answered(number: int, answer: Message | None) -> None:
            do(writer.answered(number, answer, self._clock()))

        seal = sealing([self.vouched(job, chunk, tree.root)], tree)
        do(writer.push(job, chunk, cut, seal, self._clock()))
        try:
            while not (await asyncio.wait({committed}, timeout=_TICK))[0]:
                do(writer.tick(self._clock()))
            await committed
        except BaseException:
            await calls.end()
            raise
