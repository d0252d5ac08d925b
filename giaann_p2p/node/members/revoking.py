"""Keeps the list of revoked members current, by gossip.

Each peer announces the number of its list in its record. So a revocation spreads as fast as records
do, and each peer fetches the list once. A peer that announces a newer list and does not deliver it
is not asked again for a minute.
"""

import asyncio
import logging

from giaann_p2p.errors import PeerError, TokenError
from giaann_p2p.net.transport import Transport
from giaann_p2p.node.members.gate import Gate
from giaann_p2p.node.members.lookout import Lookout
from giaann_p2p.swarm.wire.identity import Peer, name_of
from giaann_p2p.swarm.wire.messages import AskRevoked, RevokedIs, decode, encode

_EVERY = 2.0
"""Seconds between two looks for a newer list."""
_WITHIN = 4.0
"""Timeout of a request for the list, in seconds."""
_REST = 60.0
"""Seconds for which a peer that did not deliver its list is not asked again."""


class Revoking:
    """Fetches newer lists of revoked members from the peers that announce them."""

    def __init__(
        self, gate: Gate, lookout: Lookout, transport: Transport, log: logging.Logger
    ) -> None:
        self._gate, self._lookout, self._transport, self._log = gate, lookout, transport, log
        self._rests: dict[Peer, float] = {}  # peers not to ask, each with the end of its pause

    async def run(self) -> None:
        """Look for a newer list of revoked members every 2 seconds, until cancelled."""
        await self._lookout.whole.wait()
        while True:
            await self.look()
            await asyncio.sleep(_EVERY)

    async def look(self) -> None:
        """Fetch a newer list of revoked members, if a peer announces one."""
        now = asyncio.get_running_loop().time()
        self._rests = {peer: until for peer, until in self._rests.items() if now < until}
        if (peer := self._newest()) is None:
            return
        number = self._gate.admission.revoked.number
        try:
            answer = await self._transport.call(peer, encode(AskRevoked(number)), timeout=_WITHIN)
            said = decode(answer)
            if isinstance(said, RevokedIs) and said.revoked and self._gate.learn(said.revoked):
                newer = self._gate.admission.revoked
                self._log.info(
                    "received list %d of revoked members: %d peers", newer.number, len(newer.peers)
                )
                return
        except (PeerError, TokenError) as error:
            self._log.debug("no list of revoked members from %s: %s", name_of(peer), error)
        self._rests[peer] = now + _REST

    def _newest(self) -> Peer | None:
        """Return the peer that announces the newest list; None if none is newer than this peer's.

        Peers that recently failed to deliver their list are left out.
        """
        around = self._lookout.view
        number = self._gate.admission.revoked.number
        live = [
            said
            for said in around.directory.live(self._lookout.time())
            if said.revoked > number and said.peer not in self._rests and said.peer != around.me
        ]
        newest = max(live, key=lambda said: said.revoked, default=None)
        return newest.peer if newest else None
