"""The founder of a simulated swarm: disowns liars, and withdraws chunks that only they signed."""

from collections.abc import Iterable

from giaann_p2p.sim.storage import Storage
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.swarm.training.orphan_quorum import Agreed, agreed
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.messages import AskOrphans, OrphansAre
from giaann_p2p.swarm.wire.withdrawn import Chunk, roots_in


def disown(swarm: Swarm, peers: Iterable[Peer]) -> None:
    """Publish a founder's list that revokes and disowns these peers."""
    now, gone = swarm.admission.revoked, {*peers}
    liars = {*now.disowned, *gone}
    following = now.next(swarm.founder, {*now.peers, *gone}, liars)
    swarm.revoke(following)


def withdraw(swarm: Swarm) -> Agreed:
    """Withdraw the chunks that only disowned peers signed, as far as the owners agree on them.

    The list that is published makes the owners search again, for the next call.
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
    swarm.revoke(following)
    return found


def _said(peer: Storage) -> dict[Chunk, bytes] | None:
    number, roots = peer.gate.admission.revoked.number, dict[Chunk, bytes]()
    page, pages = 0, 1
    while page < pages:
        answer = peer.answers.to(AskOrphans(number, page))
        if not isinstance(answer, OrphansAre):
            return None  # it is still searching
        roots |= roots_in(answer.found)
        page, pages = page + 1, answer.pages
    return roots
