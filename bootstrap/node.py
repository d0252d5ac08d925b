"""The bootstrap peer's node: it serves the manifest and holds part of the DHT board.

Peers that know each other do not depend on this node. It makes no decisions, unless the founder
lets it raise the swarm's rules.
"""

from giaann_p2p.errors import MessageError
from giaann_p2p.node.members.context import Context
from giaann_p2p.node.members.member import Member
from giaann_p2p.node.members.membership import TokenIssuer
from giaann_p2p.node.members.resharder import Resharder
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.messages import Refusal, decode_question, encode

_NO_COLUMNS = Refusal("this is a bootstrap peer: it has the manifest, and no columns")


class BootstrapNode:
    """Serves the manifest to any peer and takes part in the DHT board."""

    def __init__(self, context: Context, issuer: TokenIssuer | None = None) -> None:
        """Create the node; with the founder's `issuer` it raises the swarm's rules by itself."""
        self.gate, self.member = context.gate, Member(context)
        self.lookout = self.member.lookout
        self._resharder = Resharder(self.member, issuer) if issuer else None

    async def run(self) -> None:
        """Serve the manifest and the DHT board until the node is told to end."""
        parts = self._resharder.parts() if self._resharder else ()
        await self.member.run(self._answer, parts)

    def leave(self) -> None:
        """End at once, because there is nothing to hand over."""
        self.member.life.end()

    async def close(self) -> None:
        """End the bootstrap node, and wait until it has ended."""
        await self.member.life.close()

    async def _answer(self, peer: Peer, body: bytes) -> bytes:
        try:
            question = decode_question(body)
        except MessageError as error:
            return encode(Refusal(str(error)[:200]))
        self.gate.check(peer, question)
        return encode(self.gate.answer(question) or _NO_COLUMNS)
