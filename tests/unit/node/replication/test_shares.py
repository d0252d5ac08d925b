"""Whose what waits is, and for whom it is full."""

from giaann_p2p.node.replication.effort import EACH
from giaann_p2p.node.replication.shares import ALONE, GREEDY, MODEST, Shares

A, B, C = b"a" * 32, b"b" * 32, b"c" * 32


def test_who_is_alone_may_fill_it() -> None:
    shares = Shares()
    assert shares.most_for(A) == ALONE
    for _ in range(100):
        shares.add(A, 1000)
    assert shares.most_for(A) == ALONE
    assert shares.most_for(B) == MODEST
    assert repr(shares) == f"<Shares: 1 peers, {100 * (EACH + 1000):,} bytes>"


def test_those_who_push_alike_are_not_held_up() -> None:
    shares = Shares()
    for _ in range(10):
        for peer in (A, B, C):
            shares.add(peer, 1000)
            assert all(shares.most_for(one) >= ALONE for one in (A, B, C))


def test_who_has_much_more_than_its_share_finds_it_full_sooner() -> None:
    shares = Shares()
    for _ in range(10):
        shares.add(A, 1000)
    shares.add(B, 1000)
    assert shares.most_for(A) == GREEDY
    assert shares.most_for(B) == MODEST
    assert shares.most_for(C) == MODEST
    for _ in range(5):
        shares.drop(A, 1000)
        shares.add(B, 1000)
    assert [shares.most_for(peer) for peer in (A, B)] == [ALONE, ALONE]


def test_bytes_count_and_nothing_is_kept_of_who_has_nothing_waiting() -> None:
    shares = Shares()
    shares.add(A, 1 << 20)
    shares.add(B, 0)
    assert shares.most_for(A) == GREEDY
    shares.drop(A, 1 << 20)
    shares.drop(B, 0)
    assert repr(shares) == "<Shares: 0 peers, 0 bytes>"
    assert shares.most_for(A) == ALONE
