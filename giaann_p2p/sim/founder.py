"""What a simulated swarm's founder does about a liar: it withdraws what that taught."""

from collections.abc import Iterable

from giaann_p2p.sim.storage import Storage
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.swarm.agreeing import Agreed, agreed
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.messages import AskOrphans, OrphansAre
from giaann_p2p.swarm.withdrawn import Chunk, roots_in


def disown(swarm: Swarm, peers: Iterable[Peer]) -> None:
    """Tell all who are not to be believed."""
    now, gone = swarm.admission.revoked, {*peers}
    liars = {*now.disowned, *gone}
    following = now.next(swarm.founder, {*now.peers, *gone}, liars)
    swarm.admission.learn(following.to_bytes())


def withdraw(swarm: Swarm) -> Agreed:
    """Ask all owners what the disowned alone taught, and have it withdrawn.

    They look anew by the list that comes of it, for the next time.
    """
    cut = {peer for pair in swarm.network.cut for peer in pair}
    found = agreed(
        {
            peer.peer: None if peer.stopped or peer.peer in cut else _said(peer)
            for peer in swarm.storages
            if peer.alive
        }
    )
    now = swarm.admission.revoked
    following = now.next(swarm.founder, {*now.peers}, now.disowned, found.roots)
    swarm.admission.learn(following.to_bytes())
    return found


def _said(peer: Storage) -> dict[Chunk, bytes] | None:
    number, roots = peer.swarm.admission.revoked.number, dict[Chunk, bytes]()
    page, pages = 0, 1
    while page < pages:
        answer = peer.answers.to(AskOrphans(number, page))
        if not isinstance(answer, OrphansAre):
            return None  # it is still looking
        roots |= roots_in(answer.found)
        page, pages = page + 1, answer.pages
    return roots
