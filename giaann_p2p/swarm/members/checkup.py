"""Whether all replicas of a swarm hold the same, judged by the digests that their peers tell.

For each shard its ready replicas are compared: with the same chunks they must have the same
content, or one of them is damaged, or lies; with other chunks they have not yet told each other
all. Where all agree, the digests of the shards add up to that of the swarm, which is what one
machine that learned the same text comes to.
"""

from collections import Counter
from collections.abc import Mapping

import msgspec

from giaann_p2p.model.digest import added, readable
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.messages import Digest
from giaann_p2p.swarm.replica import State

Told = Mapping[Peer, Mapping[int, Digest]]
"""What each peer told, by shard."""

_SERVING = {state.value.encode() for state in State if state.serves}


class Damage(msgspec.Struct, frozen=True):
    """Replicas of a shard that learned the same, and hold something else."""

    shard: int
    peers: list[Peer]
    """Those that differ from the most; all of them where no content has the most."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    shards: int
    rows: int
    connections: int
    digest: str
    """Of the whole swarm; empty where not every shard has one content."""
    lost: list[int]
    """Shards that nobody serves."""
    apart: list[int]
    """Shards whose replicas do not have the same chunks, or not yet."""
    under: list[int]
    """Shards that fewer peers serve than should."""
    damaged: list[Damage]
    silent: list[Peer]
    """Peers that told nothing, or not all."""

    @property
    def agrees(self) -> bool:
        """Whether every shard is served, and all that serve one hold the same."""
        return not (self.lost or self.apart or self.damaged)


def judged(told: Told, shards: int, replicas: int, silent: list[Peer]) -> Report:
    """Judge what was told of so many shards, each of which should be held so often."""
    lost, apart, under, damaged = list[int](), list[int](), list[int](), list[Damage]()
    whole = list[Digest]()
    for shard in range(shards):
        found = {
            peer: said[shard]
            for peer, said in told.items()
            if shard in said and said[shard].state in _SERVING
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
