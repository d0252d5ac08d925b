"""What the owners of each shard agree that it holds: the content that most of them report."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from giaann_p2p.swarm.members.checkup import DigestsOf
from giaann_p2p.swarm.members.majority import majority
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.messages import Digest
from giaann_p2p.swarm.wire.replica import ReplicaState

_SERVING = {state.value.encode() for state in ReplicaState if state.serves}


class Agreed(NamedTuple):
    """The content of a shard that a majority of its replicas has."""

    digest: Digest
    peers: list[Peer]
    """The peers that have it."""


class Agreement(NamedTuple):
    """What a swarm's shards hold."""

    agreed: Mapping[int, Agreed]
    open: list[int]
    """The shards of which no content has a majority."""
    uneven: list[int]
    """The shards that have other chunks than most shards: somebody is learning."""


def agreement(told: DigestsOf, shards: int, replicas: int) -> Agreement:
    """Return what most replicas of each shard hold, given the digests that peers reported.

    A majority is one of the replicas that there should be, or of those that there are, if they are
    fewer.
    """
    agreed = dict[int, Agreed]()
    for shard in range(shards):
        holders = {peer: said[shard] for peer, said in told.items() if shard in said}
        serving = {peer: one for peer, one in holders.items() if one.state in _SERVING}
        votes = Counter((one.chunks, one.content) for one in serving.values())
        if not votes:
            continue
        (best, count) = votes.most_common(1)[0]
        if count >= majority(min(replicas, len(serving))):
            peers = [peer for peer, one in serving.items() if (one.chunks, one.content) == best]
            agreed[shard] = Agreed(serving[peers[0]], sorted(peers))
    sets = Counter(one.digest.chunks for one in agreed.values())
    usual = sets.most_common(1)[0][0] if sets else b""
    return Agreement(
        agreed,
        [shard for shard in range(shards) if shard not in agreed],
        [shard for shard, one in agreed.items() if one.digest.chunks != usual],
    )
