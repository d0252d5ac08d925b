"""How full peers would be by a plan: at the end, and while they keep what they are to hand over."""

from types import SimpleNamespace
from typing import cast

import pytest

from giaann_p2p.swarm.members.overview import Overview
from giaann_p2p.swarm.members.placement import Moved, Placement
from giaann_p2p.swarm.members.reshard_plan import Filled, plan_of
from giaann_p2p.swarm.wire.identity import Peer

SHARDS, MORE = 16, 32
MEMBERS = {Peer(bytes([number]) * 32): 1 << 30 for number in range(5)}
BEFORE = Placement.of(MEMBERS, SHARDS, 2, 2, SHARDS)
AFTER = Placement.of(MEMBERS, MORE, 2, 2, SHARDS)
MOVES = BEFORE.moves(AFTER)
BUSIEST = max(MOVES, key=lambda peer: min(len(MOVES[peer].gains), len(MOVES[peer].loses)))
SIZE = 1000
"""Bytes of a shard before; its children have half of them each."""


def used_by(peer: Peer) -> int:
    return SIZE * len(BEFORE.shards_of(peer))


def filled(capacity: int) -> list[Filled]:
    """Return who would have little room left if the busiest peer has such a capacity."""
    peers = [
        SimpleNamespace(
            peer=peer,
            role="storage",
            capacity=capacity if peer == BUSIEST else 1 << 30,
            used=used_by(peer),
            ready=len(BEFORE.shards_of(peer)),
            syncing=0,
        )
        for peer in MEMBERS
    ]
    found = SimpleNamespace(peers=peers, shards=SHARDS)
    return list(plan_of(BEFORE, AFTER, cast(Overview, found)).filled)


def bytes_of(moved: Moved) -> tuple[int, int]:
    return SIZE // 2 * len(moved.gains), SIZE // 2 * len(moved.loses)


def test_what_a_peer_loses_is_gone_at_the_end_and_there_until_then() -> None:
    gained, lost = bytes_of(MOVES[BUSIEST])
    assert gained
    assert lost
    peak = used_by(BUSIEST) + gained
    end = peak - lost
    (brief,) = filled(capacity := int(peak / 0.95))
    assert brief == Filled(BUSIEST, pytest.approx(end / capacity), pytest.approx(peak / capacity))
    assert not brief.stays
    (full,) = filled(int(end / 0.95))
    assert full.stays
    assert full.share == pytest.approx(0.95, abs=0.01)
    assert filled(int(peak / 0.89)) == []
