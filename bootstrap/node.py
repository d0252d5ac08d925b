"""A bootstrap peer, alive: it gives the manifest to whoever asks, and keeps part of the board.

It decides nothing, and nothing depends on it once peers know each other.
"""

import logging

from giaann_p2p.errors import MessageError
from giaann_p2p.net.board import Board
from giaann_p2p.net.transport import Transport
from giaann_p2p.node.acquaintances import Acquaintances
from giaann_p2p.node.clock import Clock
from giaann_p2p.node.gate import Gate
from giaann_p2p.node.lifetime import Lifetime
from giaann_p2p.node.lookout import Lookout
from giaann_p2p.node.revoking import Revoking
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.manifest import Manifest
from giaann_p2p.swarm.messages import Refused, decode, encode
from giaann_p2p.swarm.surroundings import Surroundings

_LOG = logging.getLogger("giaann.bootstrap")
_NO_COLUMNS = Refused("this is a bootstrap peer: it has the manifest, and no columns")


class BootstrapNode:
    """See the module."""

    def __init__(
        self,
        me: Peer,
        manifest: Manifest,
        transport: Transport,
        board: Board,
        acquaintances: Acquaintances,
        clock: Clock,
        gate: Gate | None = None,
    ) -> None:
        self.gate = gate or Gate(manifest, transport, clock=clock)
        self.gate.on_change(self._members_changed)
        self.lookout = Lookout(
            board,
            Surroundings.of(me, manifest, self.gate.admission),
            manifest.layout,
            manifest.swarm_id,
            clock,
            roles=("storage", "compute"),
            log=_LOG,
        )
        self._transport, self._acquaintances = transport, acquaintances
        self._life = Lifetime(_LOG)

    async def run(self) -> None:
        """Serve until it is closed."""
        self._transport.serve(self._answer)
        await self._life.run(
            [
                self.lookout.run(),
                self._acquaintances.run(self.lookout),
                Revoking(self.gate, self.lookout, self._transport, _LOG).run(),
            ]
        )

    def leave(self) -> None:
        """End: there is nothing to hand over."""
        self._life.end()

    async def close(self) -> None:
        """End."""
        await self._life.close()

    async def _answer(self, peer: Peer, body: bytes) -> bytes:
        try:
            question = decode(body)
        except MessageError as error:
            return encode(Refused(str(error)[:200]))
        self.gate.check(peer, question)
        return encode(self.gate.answer(question) or _NO_COLUMNS)

    def _members_changed(self) -> None:
        self.lookout.others.around.directory.look_again(self.lookout.time())
