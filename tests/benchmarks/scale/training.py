"""What it takes to bring a chunk to its owners, and how many chunks that lets through."""

from functools import cache
from typing import NamedTuple

import numpy as np

from giaann_p2p.model.spec import CHUNK
from giaann_p2p.net.frames import HEADER
from giaann_p2p.store.codec.parcel import encode
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.seal import made
from giaann_p2p.store.update import Update, cut
from giaann_p2p.swarm.wire.messages import Push, Pushed
from giaann_p2p.swarm.wire.messages import encode as encoded
from giaann_p2p.swarm.wire.shardset import packed
from giaann_p2p.swarm.wire.voucher import sealing, vouched
from tests.benchmarks.scale.lessons import learned
from tests.benchmarks.scale.swarms import LINKS, REPLICAS, fitting, identities, placement
from tests.benchmarks.scale.tables import Cells, number, size

PARSED = 1150 / CHUNK
"""Chunks a second that a core parses and learns (see the README)."""
JOB = bytes(16)
_ROUND_TRIPS = (0.02, 0.08)


class Pushes(NamedTuple):
    """A chunk on its way."""

    sent: int
    """Bytes."""
    received: int
    """Bytes of the answers."""
    messages: int
    empty: int
    """Messages without a row."""


def costs(peers: int) -> Cells:
    """Return what a chunk costs."""
    pushes, whole = pushed(peers), len(encode(learned(1)))
    return {
        "N": f"{fitting(peers):,}",
        "messages, one to each owner": f"{pushes.messages:,}",
        "of these, without a row": f"{pushes.empty:,}",
        "bytes pushed": size(pushes.sent),
        "bytes of the answers": size(pushes.received),
        f"the delta itself, {REPLICAS} times": size(REPLICAS * whole),
        "messages a second, of one core": number(PARSED * pushes.messages),
    }


def rates(peers: int) -> Cells:
    """Return how many chunks a second a compute peer brings to their owners."""
    sent, cells = pushed(peers).sent, {}
    for link in LINKS:
        rate = link / sent
        cells[f"{size(link)}/s: chunks a second"] = number(rate)
        cells[f"{size(link)}/s: cores that fill it"] = number(rate / PARSED)
        flying = [f"{max(1, np.ceil(rate * trip)):,.0f}" for trip in _ROUND_TRIPS]
        name = f"{size(link)}/s: chunks in flight, at a round trip of 20 and 80 ms"
        cells[name] = ", ".join(flying)
    return cells


@cache
def pushed(peers: int) -> Pushes:
    """Push a chunk."""
    shards, placed = fitting(peers), placement(peers, fitting(peers))
    layout, delta = Layout(shards=shards), learned(1)
    tree = made(delta, layout)
    author = identities(1)[0]
    seal = sealing([vouched(author, bytes(32), JOB, 10_000, tree.root)], tree)
    sent = received = messages = empty = 0
    for peer in placed.peers:
        mine = placed.shards_of(peer)
        if not len(mine):
            continue
        part = cut(Update(JOB, 0, mine, delta), mine, layout).delta
        named = packed(mine, shards)
        sent += HEADER + len(encoded(Push(JOB, 10_000, named, encode(part), seal(mine))))
        received += HEADER + len(encoded(Pushed(named)))
        messages += 1
        empty += not part.neurons
    return Pushes(sent, received, messages, empty)
