"""Consistency check of a swarm: compares the digests that peers report of their replicas.

Ready replicas of a shard that have the same chunks must have the same content; otherwise one
replica is damaged, or its peer lies. If replicas have different chunks, anti-entropy between them
is not finished yet. If all replicas agree, the digests of the shards add up to the digest of the
swarm. It equals the digest of a single machine that has learned the same text.
"""

from collections import Counter
from collections.abc import Mapping

import msgspec

from giaann_p2p.model.digest import added, readable
from giaann_p2p.swarm.members.losses import NONE, Losses
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.messages import Digest
from giaann_p2p.swarm.wire.replica import SERVING

DigestsOf = Mapping[Peer, Mapping[int, Digest]]
"""The digests that each peer reported, by shard."""


class Damage(msgspec.Struct, frozen=True):
    """Damage of a shard: replicas of it have the same chunks but different content."""

    shard: int
    peers: list[Peer]
    """Peers whose replica differs from the most frequent content; all peers with these chunks if
    there is a tie."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a consistency check of a swarm."""

    shards: int
    rows: int
    connections: int
    digest: str
    """Digest of the whole swarm; empty unless all replicas of every shard agree."""
    lost: list[int]
    """Shards that no peer serves."""
    apart: list[int]
    """Shards whose replicas have different chunks; anti-entropy may still be under way."""
    under: list[int]
    """Shards that are served by fewer peers than they should be."""
    damaged: list[Damage]
    silent: list[Peer]
    """Peers that did not report the digests of all their replicas."""
    losses: Losses = NONE
    """Content that storage peers remember but that no peer holds any more."""

    @property
    def agrees(self) -> bool:
        """Whether every shard is served, its replicas agree, and nothing was lost."""
        return not (self.lost or self.apart or self.damaged or self.losses)


def judged(
    told: DigestsOf, shards: int, replicas: int, silent: list[Peer], losses: Losses = NONE
) -> Report:
    """Compute the report on a swarm's shards from the digests that peers reported."""
    lost, apart, under, damaged = list[int](), list[int](), list[int](), list[Damage]()
    whole = list[Digest]()
    for shard in range(shards):
        found = {
            peer: said[shard]
            for peer, said in told.items()
            if shard in said and said[shard].state in SERVING
        }
        if not found:
            lost.append(shard)
            continue
        if len(found) < replicas:
            under.append(shard)
        if len({one.chunks for one in found.values()}) > 1:
            apart.append(shard)
        damaged += _damage(shard, found)
        whole.append(next(iter(found.values())))
    agrees = not (lost or apart or damaged)
    contents = (int.from_bytes(one.content, "little") for one in whole)
    return Report(
        shards=shards,
        rows=sum(one.rows for one in whole),
        connections=sum(one.connections for one in whole),
        digest=readable(added(contents)) if agrees else "",
        lost=lost,
        apart=apart,
        under=under,
        damaged=damaged,
        silent=silent,
        losses=losses,
    )


def _damage(shard: int, found: Mapping[Peer, Digest]) -> list[Damage]:
    damage = []
    for chunks in {one.chunks: None for one in found.values()}:
        alike = {peer: one.content for peer, one in found.items() if one.chunks == chunks}
        (content, votes), *others = Counter(alike.values()).most_common()
        if not others:
            continue
        decided = votes > others[0][1]
        peers = [peer for peer, had in alike.items() if not decided or had != content]
        damage.append(Damage(shard, sorted(peers)))
    return damage
