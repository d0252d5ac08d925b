"""What others are told of where a peer is."""

import pytest

from giaann_p2p.net.hive.outside import outside

LOOPBACK = "/ip4/127.0.0.1/tcp/4100/p2p/x", "/ip6/::1/tcp/4100/p2p/x"
LINK_LOCAL = "/ip6/fe80::1/tcp/4100/p2p/x", "/ip4/169.254.3.4/tcp/4100/p2p/x"
OTHERS = (
    "/ip4/10.0.0.7/tcp/4100/p2p/x",
    "/ip6/2001:db8::7/tcp/4100/p2p/x",
    "/dns4/seed.example.org/tcp/4100/p2p/x",
    "/ip4/10.0.0.8/tcp/4100/p2p/r/p2p-circuit/p2p/x",
)


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("no_use", [*LOOPBACK, *LINK_LOCAL, "/ip4/127.9.9.9/udp/1/quic-v1/p2p/x"])
def test_what_leads_nowhere_is_not_told_by_who_has_others(no_use: str, other: str) -> None:
    assert outside([no_use, other]) == outside([other, no_use]) == (other,)


def test_all_others_are_told_in_their_order() -> None:
    assert outside([*LOOPBACK, *OTHERS, *LINK_LOCAL]) == OTHERS
    assert outside(OTHERS) == OTHERS


def test_who_has_nothing_else_tells_what_it_has() -> None:
    """Or a swarm on one machine would find nobody."""
    for some in (LOOPBACK, LOOPBACK[:1], (*LOOPBACK, *LINK_LOCAL)):
        assert outside(some) == some
    assert outside([]) == ()


def test_what_is_no_address_is_left_as_it_is() -> None:
    assert outside(["/ip4/nonsense/tcp/1/p2p/x", LOOPBACK[0]]) == ("/ip4/nonsense/tcp/1/p2p/x",)
