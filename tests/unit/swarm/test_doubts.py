"""How long a peer is bypassed that does not answer."""

import pytest

from giaann_p2p.swarm.doubts import Doubts, bypass_for
from giaann_p2p.swarm.identity import Peer

ONE, OTHER = Peer(b"1" * 32), Peer(b"2" * 32)


@pytest.mark.parametrize(
    ("failures", "seconds"), [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (8, 60), (100_000, 60)]
)
def test_the_more_failures_the_longer(failures: int, seconds: float) -> None:
    assert bypass_for(failures) == seconds


def test_a_doubt_is_of_one_peer_until_it_ends() -> None:
    doubts = Doubts()
    assert doubts.since(ONE) is None
    doubts.suspect(ONE, 10.0)
    doubts.suspect(ONE, 10.9)  # on its way when the peer was bypassed already
    assert (doubts.since(ONE), doubts.since(OTHER), len(doubts)) == (10.0, None, 1)
    assert [doubts.suspected(ONE, now) for now in (10.0, 10.99, 11.0)] == [True, True, False]
    assert not doubts.suspected(OTHER, 10.0)
    doubts.suspect(ONE, 11.0)
    assert doubts.since(ONE) == 11.0
    assert [doubts.suspected(ONE, now) for now in (12.9, 13.0)] == [True, False]
    doubts.end(ONE)
    doubts.end(OTHER)
    assert (doubts.since(ONE), len(doubts)) == (None, 0)
