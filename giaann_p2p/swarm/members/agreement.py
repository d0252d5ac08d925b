"""Agreement on each shard's content: the content that most of its owners report.

Only the owners that the placement names have a vote. Any peer may claim to serve a shard, so a few
strangers could otherwise pass off their content as the swarm's.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from giaann_p2p.swarm.members.checkup import DigestsOf
from giaann_p2p.swarm.members.majority import majority
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.messages import Digest
from giaann_p2p.swarm.wire.replica import SERVING


class Owners(Protocol):
    """The owners of shards, as `Placement` has them."""

    def owners(self, shard: int) -> Sequence[Peer]:
        """Return the peers that own a shard."""


class Agreed(NamedTuple):
    """The content of a shard that a majority of its owners has."""

    digest: Digest
    peers: list[Peer]
    """The owners that have this content."""


class Agreement(NamedTuple):
    """The content of a swarm's shards, as far as their owners agree on it."""

    agreed: Mapping[int, Agreed]
    open: list[int]
    """The shards of which no content is held by a majority of the owners."""
    uneven: list[int]
    """The shards whose chunks differ from those of most shards, because a text is being learned."""


def agreement(told: DigestsOf, shards: int, placement: Owners) -> Agreement:
    """Return what most owners of each shard hold, given the digests that peers reported.

    "Most" is a majority of all owners, including those that are silent or do not serve it yet.
    """
    agreed = dict[int, Agreed]()
    for shard in range(shards):
        owners = placement.owners(shard)
        serving = {
            peer: told[peer][shard]
            for peer in owners
            if shard in told.get(peer, {}) and told[peer][shard].state in SERVING
        }
        votes = Counter((one.chunks, one.content) for one in serving.values())
        if not votes:
            continue
        (best, count) = votes.most_common(1)[0]
        if count >= majority(len(owners)):
            peers = [peer for peer, one in serving.items() if (one.chunks, one.content) == best]
            agreed[shard] = Agreed(serving[peers[0]], sorted(peers))
    sets = Counter(one.digest.chunks for one in agreed.values())
    usual = sets.most_common(1)[0][0] if sets else b""
    return Agreement(
        agreed,
        [shard for shard in range(shards) if shard not in agreed],
        [shard for shard, one in agreed.items() if one.digest.chunks != usual],
    )
