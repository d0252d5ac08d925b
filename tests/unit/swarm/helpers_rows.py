"""Rows that grow: what honest replicas say of a neuron, and what others might."""

import random

import numpy as np

from giaann_p2p.model.rows import Name, Row

Place = tuple[int, int, int, int]
"""Target concept and feature, branch, segment."""
BEE = Name("bee", None)


def row(
    count: int, links: dict[Place, int], name: Name = BEE, rng: random.Random | None = None
) -> Row:
    """Return a row; its targets stand in order, or in one of chance."""
    targets = sorted({(concept, feature) for concept, feature, _, _ in links})
    if rng is not None:
        rng.shuffle(targets)
    number = {target: at for at, target in enumerate(targets)}
    ordered = sorted((number[place[:2]], place[2], place[3], links[place]) for place in links)
    told = np.array(ordered, np.int64).reshape(-1, 4)
    named = np.array(targets, np.uint64).reshape(-1, 2)
    return Row(
        name.neuron,
        name,
        count,
        named[:, 0],
        named[:, 1],
        told[:, 0],
        told[:, 1].astype(np.uint8),
        told[:, 2].astype(np.uint8),
        told[:, 3],
    )


def links_of(one: Row) -> dict[Place, int]:
    """Return a row's connections, in no order."""
    places = zip(
        one.target_concept[one.target].tolist(),
        one.target_feature[one.target].tolist(),
        one.branch.tolist(),
        one.segment.tolist(),
        strict=True,
    )
    return dict(zip(places, one.strength.tolist(), strict=True))


def links(rng: random.Random, most: int = 6) -> dict[Place, int]:
    """Return some connections of few places, so that they often meet."""
    places = {
        (rng.randrange(1, 3), rng.randrange(2), rng.randrange(2), rng.randrange(2))
        for _ in range(rng.randrange(most))
    }
    return {place: rng.randrange(1, 4) for place in sorted(places)}
