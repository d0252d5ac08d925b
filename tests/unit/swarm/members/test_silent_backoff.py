"""How long a peer is bypassed that does not answer."""

from giaann_p2p.swarm.members.silent_backoff import SilentBackoff
from giaann_p2p.swarm.wire.identity import Peer

ONE, OTHER = Peer(b"1" * 32), Peer(b"2" * 32)


def test_the_more_failures_the_longer() -> None:
    silences, now = SilentBackoff(), 0.0
    for seconds in (1, 2, 4, 8, 16, 32, 60, 60):
        silences.suspect(ONE, now)
        assert silences.suspected(ONE, now + seconds - 0.1)
        now += seconds
        assert not silences.suspected(ONE, now)


def test_a_doubt_is_of_one_peer_until_it_ends() -> None:
    silences = SilentBackoff()
    assert silences.since(ONE) is None
    silences.suspect(ONE, 10.0)
    silences.suspect(ONE, 10.9)  # on its way when the peer was bypassed already
    assert (silences.since(ONE), silences.since(OTHER), len(silences)) == (10.0, None, 1)
    assert [silences.suspected(ONE, now) for now in (10.0, 10.99, 11.0)] == [True, True, False]
    assert not silences.suspected(OTHER, 10.0)
    silences.suspect(ONE, 11.0)
    assert silences.since(ONE) == 11.0
    assert [silences.suspected(ONE, now) for now in (12.9, 13.0)] == [True, False]
    silences.end(ONE)
    silences.end(OTHER)
    assert (silences.since(ONE), len(silences)) == (None, 0)
