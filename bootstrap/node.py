"""A bootstrap peer, alive: it gives the manifest to whoever asks, and keeps part of the board.

It decides nothing, and nothing depends on it once peers know each other.
"""

import logging

from giaann_p2p.errors import MessageError
from giaann_p2p.net.board import Board
from giaann_p2p.net.transport import Transport
from giaann_p2p.node.acquaintances import Acquaintances
from giaann_p2p.node.clock import Clock
from giaann_p2p.node.lifetime import Lifetime
from giaann_p2p.node.lookout import Lookout
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.manifest import Manifest
from giaann_p2p.swarm.messages import AskManifest, ManifestIs, Refused, decode, encode
from giaann_p2p.swarm.surroundings import Surroundings

_LOG = logging.getLogger("giaann.bootstrap")


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
    ) -> None:
        self.asked = 0
        """How often somebody wanted the manifest."""
        self.lookout = Lookout(
            board,
            Surroundings(me, manifest.swarm_id, manifest.layout, manifest.replicas),
            manifest.layout,
            manifest.swarm_id,
            clock,
            roles=("storage", "compute"),
            log=_LOG,
        )
        self._manifest, self._transport, self._acquaintances = manifest, transport, acquaintances
        self._life = Lifetime(_LOG)

    async def run(self) -> None:
        """Serve until it is closed."""
        self._transport.serve(self._answer)
        await self._life.run([self.lookout.run(), self._acquaintances.run(self.lookout)])

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
        if not isinstance(question, AskManifest):
            return encode(Refused("this is a bootstrap peer: it has the manifest, and no columns"))
        self.asked += 1
        return encode(ManifestIs(self._manifest.to_bytes()))
