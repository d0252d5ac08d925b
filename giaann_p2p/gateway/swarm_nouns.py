"""The nouns that a swarm knows."""

from giaann_p2p.client.session import Session
from giaann_p2p.gateway.views import Found


class SwarmNouns:
    """Lists the nouns of a swarm."""

    async def search(self, session: Session, prefix: str, most: int) -> Found:
        """Return nouns that begin with a text, the most frequent first."""
        return Found(found=[], of=0, note="this swarm cannot list its nouns")
