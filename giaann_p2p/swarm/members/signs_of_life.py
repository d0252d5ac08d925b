"""Signs of life of compute peers, each reported once, for the peers that give them work."""

from giaann_p2p.swarm.members.directory import Directory
from giaann_p2p.swarm.wire.identity import Peer


class SignsOfLife:
    """The newest record and pulse of each compute peer that `news` has reported."""

    def __init__(self) -> None:
        self._told: dict[Peer, tuple[int, int, int]] = {}

    def __repr__(self) -> str:
        return f"<SignsOfLife of {len(self._told):,} compute peers>"

    def news(self, directory: Directory, now: float) -> list[Peer]:
        """Return the live compute peers with a new record or pulse since the last call."""
        shown = {
            said.peer: (said.incarnation, said.sequence, pulse.number)
            for said, pulse in directory.shown(now)
            if said.role == "compute"
        }
        news = [peer for peer, newest in shown.items() if self._told.get(peer) != newest]
        self._told = shown
        return news
