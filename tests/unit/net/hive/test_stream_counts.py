"""Peers that open streams without end."""

from giaann_p2p.net.hive.stream_counts import StreamCounts
from giaann_p2p.swarm.wire.identity import Peer

ONE, OTHER = Peer(bytes(32)), Peer(bytes([1]) * 32)


def test_so_many_in_so_many_seconds_and_no_more() -> None:
    openings = StreamCounts(most=2, within=10.0)
    assert [openings.too_many(ONE, now) for now in (0.0, 1.0, 2.0, 9.9)] == [False] * 2 + [True] * 2
    assert not openings.too_many(OTHER, 9.9)
    assert [openings.too_many(ONE, now) for now in (10.0, 11.0, 12.0)] == [False, False, True]


def test_many_peers_are_not_all_remembered() -> None:
    openings = StreamCounts(most=1, within=10.0, peers=3)
    for number in range(100):
        assert not openings.too_many(Peer(bytes([number]) * 32), 0.0)
    assert repr(openings) == "<StreamCounts of 3 peers>"
