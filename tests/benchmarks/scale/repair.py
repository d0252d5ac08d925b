"""How long it takes until all shards have R owners again, after many peers were lost at once."""

import math
import random
from functools import cache
from typing import NamedTuple

import numpy as np

from giaann_p2p.swarm.members.placement import Floats, Placement
from giaann_p2p.swarm.replication.settings import Settings
from giaann_p2p.swarm.wire.record import LIFETIME
from tests.benchmarks.scale.swarms import LINKS, MODELS, REPLICAS, fitting, members, placement
from tests.benchmarks.scale.tables import Cells, number, size

PART = 100
"""One of so many peers is lost."""
DETECTION = LIFETIME + LIFETIME / 3
"""Seconds until everybody knows at the latest: the record ends, and the directory is read."""
TRIP = 0.1
"""Seconds that a question takes there and back."""
TICK = 1.0
"""Seconds from one look at everything to the next."""
BEGUN = 2 * TICK
"""Seconds until the first shard is sent: a peer learns at one tick what it lacks, and at the next
it has it sent."""
ASKED = TRIP / Settings().transfers
"""Seconds for each shard that arrives, however small: some arrive at once, each for one question,
and the next is asked for when one is there."""


class Repair(NamedTuple):
    """What is to be sent, in shards, by peer."""

    received: Floats
    sent: Floats
    orphans: int
    """Shards of which nobody is left."""


def done(peers: int) -> Cells:
    """Return how much is to be sent, and how long that takes."""
    shards, repair = fitting(peers), needed(peers)
    cells = {
        "N": f"{shards:,}",
        "peers lost": f"{peers // PART:,}",
        "shards of which nobody is left": f"{repair.orphans:,}",
        "shards to be sent": number(float(repair.received.sum())),
        "by the busiest sender, to the busiest receiver": (
            f"{number(float(repair.sent.max()))}, {number(float(repair.received.max()))}"
        ),
    }
    for name, model in MODELS.items():
        times = [number(seconds(repair, model / shards, link)) for link in LINKS]
        cells[f"{name}: seconds at {', '.join(size(link) for link in LINKS)}/s"] = ", ".join(times)
    return cells


def chances(peers: int) -> Cells:
    """Return how likely it is that a shard loses all its owners at once."""
    shards, lost = fitting(peers), peers // PART
    triples = len(np.unique(np.sort(placement(peers, shards).owner_matrix, axis=1), axis=0))
    one = all_lost(peers, lost)
    return {
        "a given shard loses all": f"{one:.2g}" if one else "never",
        "sets of peers that own something": f"{triples:,}",
        "some shard does": f"{-math.expm1(-triples * one):.1%}" if one else "never",
        "part of the model that is lost then": f"{1 / shards:.4%}",
    }


@cache
def needed(peers: int) -> Repair:
    """Return what is to be sent after the loss of some peers, drawn at random."""
    before = placement(peers, fitting(peers))
    lost = set(random.Random(peers + 2).sample(before.peers, peers // PART))
    rest = {peer: capacity for peer, capacity in members(peers).items() if peer not in lost}
    return between(before, Placement.of(rest, fitting(peers), REPLICAS))


def between(before: Placement, after: Placement) -> Repair:
    """Return what those who are left send to one another; owners of a shard share in sending."""
    received, sent = (np.zeros(len(after.peers)) for _ in range(2))
    places = {peer: at for at, peer in enumerate(after.peers)}
    orphans = set()
    for peer, part in before.moves(after).items():
        for shard in part.gains.tolist():
            left = [places[owner] for owner in before.owners(shard) if owner in places]
            if not left:
                orphans.add(shard)
                continue
            received[places[peer]] += 1
            sent[left] += 1 / len(left)
    return Repair(received, sent, len(orphans))


def seconds(repair: Repair, shard: float, link: float) -> float:
    """Return after how long all is there, for shards of so many bytes."""
    asked = repair.received * ASKED
    received, sent = repair.received * shard / link, repair.sent * shard / link
    return DETECTION + BEGUN + float(max(asked.max(), received.max(), sent.max()))


def all_lost(peers: int, lost: int) -> float:
    """Return how likely it is that R given peers are among the lost."""
    return math.comb(lost, REPLICAS) / math.comb(peers, REPLICAS)
