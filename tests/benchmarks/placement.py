"""How evenly shards lie, how much a join or leave moves, and how fast all is found.

    python -m tests.benchmarks.placement [--memberships 200] [--peers 64] [--shards 4096]
                                         [--replicas 3] [--json [FILE]]

Members have capacities of 1 to 8 GiB, drawn at random. Of each membership, every peer leaves once,
and joins the others once: moves are replicas that somebody has to fetch, over the least that had
to be: the newcomer's share, or what the peer that left had owned.
"""

import argparse
import json
import random
import statistics
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.members.placement import Placement
from tests.benchmarks.process import timed
from tests.benchmarks.targets import NONE, Target

GIB = 1 << 30
SIZES = [(12, 256), (64, 4096), (1_000, 4096), (1_000, 65_536), (10_000, 65_536)]
BATCH = 1_000
LOOK_UPS = 1_000_000

BALANCE = "most that a peer owns, of its share by capacity"
JOIN = "moved by a join, of the newcomer's share"
LEAVE = "moved by a leave, of what had been owned"
TARGETS = {
    f"{BALANCE}: most": Target(most=1.10),
    f"{JOIN}: mean": Target(most=1.2),
    f"{JOIN}: most": Target(most=1.2),
    f"{LEAVE}: mean": Target(most=1.2),
    f"{LEAVE}: most": Target(most=1.2),
    "look-ups by concept/s": Target(least=1e6),
    "look-ups by shard/s": Target(least=1e6),
}

Figures = dict[str, float]
Members = dict[bytes, int]


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--memberships", type=int, default=200)
    options.add_argument("--peers", type=int, default=64)
    options.add_argument("--shards", type=int, default=4096)
    options.add_argument("--replicas", type=int, default=3)
    options.add_argument("--json", nargs="?", const="-", help="print JSON, or write it to a file")
    chosen = options.parse_args()
    figures = spread(chosen.memberships, chosen.peers, chosen.shards, chosen.replicas)
    figures |= durations() | look_ups(chosen.peers, chosen.shards, chosen.replicas)
    show(figures)
    told = {"figures": figures, "targets": {name: str(bound) for name, bound in TARGETS.items()}}
    if chosen.json == "-":
        print(json.dumps(told, indent=2))
    elif chosen.json:
        Path(chosen.json).write_text(json.dumps(told, indent=2) + "\n")


def spread(memberships: int, peers: int, shards: int, replicas: int) -> Figures:
    """Return how evenly shards lie, and how many move."""
    most, joins, leaves = [], [], []
    for seed in range(memberships):
        members = drawn(random.Random(seed), peers + 1)
        whole = Placement.of(members, shards, replicas)
        most.append(fullest(whole, members))
        for at, peer in enumerate(whole.peers):
            less = Placement.of({p: c for p, c in members.items() if p != peer}, shards, replicas)
            joins.append(_moved(less, whole) / whole.shares[at])
            leaves.append(_moved(whole, less) / len(whole.shards_of(peer)))
    return {
        **distribution(BALANCE, most),
        **distribution(JOIN, joins),
        **distribution(LEAVE, leaves),
    }


def drawn(rng: random.Random, peers: int) -> Members:
    """Draw members of unequal capacities."""
    return {rng.randbytes(32): round(rng.uniform(1, 8) * GIB) for _ in range(peers)}


def fullest(placement: Placement, members: Members) -> float:
    """Return the most that a peer owns, of its exact share."""
    owned = np.array([len(placement.shards_of(peer)) for peer in placement.peers])
    capacity = np.array([members[peer] for peer in placement.peers])
    share = owned.sum() * capacity / capacity.sum()
    return float((owned / share).max())


def _moved(before: Placement, after: Placement) -> int:
    return sum(len(part.gains) for part in before.moves(after).values())


def distribution(name: str, values: Sequence[float]) -> Figures:
    """Return mean, 99th percentile and the most."""
    return {
        f"{name}: mean": statistics.fmean(values),
        f"{name}: p99": float(np.quantile(values, 0.99)),
        f"{name}: most": float(max(values)),
    }


def durations() -> Figures:
    """Return how long a placement takes that was not computed before, but for one member."""
    found = {}
    for peers, shards in SIZES:
        members = drawn(random.Random(peers), peers)
        place = partial(Placement.of, members, shards, 3)
        place()
        runs = []
        for peer in list(members)[:5]:
            del members[peer]
            runs.append(_seconds(place))
        found[f"{shards:,} shards on {peers:,} peers: ms"] = 1e3 * statistics.median(runs)
    return found


def look_ups(peers: int, shards: int, replicas: int) -> Figures:
    """Return how many owners are looked up in a second, 1,000 at once, in one process."""
    placement = Placement.of(drawn(random.Random(1), peers), shards, replicas)
    layout = Layout(shards=shards)
    concepts = np.random.default_rng(1).integers(0, 1 << 63, LOOK_UPS, np.uint64)
    features = np.zeros_like(concepts)
    batches = range(0, LOOK_UPS, BATCH)
    numbers = layout.shards_of(concepts, features)

    def by_concept() -> None:
        for at in batches:
            one = slice(at, at + BATCH)
            placement.owner_matrix[layout.shards_of(concepts[one], features[one])]

    def by_shard() -> None:
        for at in batches:
            placement.owner_matrix[numbers[at : at + BATCH]]

    return {
        "look-ups by concept/s": LOOK_UPS / _seconds(by_concept),
        "look-ups by shard/s": LOOK_UPS / _seconds(by_shard),
    }


def _seconds(action: Callable[[], object]) -> float:
    with timed() as taken:
        action()
    return taken.cpu


def show(figures: Figures) -> None:
    """Print a table."""
    table = Table("", "", "target")
    for name, value in figures.items():
        bound = TARGETS.get(name, NONE)
        told = f"{value:,.0f}" if value >= 1000 else f"{value:.3f}"
        table.add_row(name, told if bound.met(value) else f"[red]{told} !", str(bound))
    Console().print(table)


if __name__ == "__main__":
    main()
