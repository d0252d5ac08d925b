"""Standing is earned by being seen, survives restarts, and no claim or flood gives or takes it."""

import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.swarm.members.standing import DAY, FOUNDING, MOST_PEERS, Standing
from giaann_p2p.swarm.wire.identity import Peer

ME, OLD, NEW = (Peer(bytes([n]) * 32) for n in range(3))


def _seen(book: Standing, peer: Peer, start: float, end: float, every: float = 10.0) -> None:
    now = start
    while now <= end:
        book.heard(peer, now)
        now += every


def test_in_a_swarm_that_begins_all_are_equal() -> None:
    book = Standing(ME)
    book.heard(OLD, 0)
    assert book.has(OLD)
    assert book.has(NEW)


def test_after_the_first_minutes_a_newcomer_has_none_for_half_as_long_as_the_oldest() -> None:
    book = Standing(ME)
    _seen(book, OLD, 0, FOUNDING)
    book.heard(NEW, FOUNDING)
    assert book.has(OLD)
    assert not book.has(NEW)
    _seen(book, OLD, FOUNDING, 2 * FOUNDING)
    _seen(book, NEW, FOUNDING, 2 * FOUNDING)
    assert book.has(NEW)


def test_a_day_is_enough_however_old_the_others_are() -> None:
    book = Standing(ME, seen={OLD: 100 * DAY, NEW: DAY - 1})
    assert not book.has(NEW)
    book.heard(NEW, 0)
    book.heard(NEW, 1)
    assert book.has(NEW)


def test_a_peer_always_stands_for_itself() -> None:
    assert Standing(ME, seen={OLD: DAY}).has(ME)


def test_time_away_does_not_count() -> None:
    book = Standing(ME)
    for start in range(0, 10_000, 1000):
        _seen(book, OLD, start, start + 100)
    assert book.seconds(OLD) == 1000


def test_a_clock_that_goes_back_takes_nothing() -> None:
    book = Standing(ME)
    _seen(book, OLD, 1000, 1100)
    book.heard(OLD, 5)
    assert book.seconds(OLD) == 100


def test_a_restart_forgets_nothing() -> None:
    book = Standing(ME, seen={OLD: 5 * DAY, NEW: 60.0})
    again = Standing(ME)
    again.restore(book.packed())
    assert again.has(OLD)
    assert not again.has(NEW)


@pytest.mark.parametrize("data", [b"", b"\x93", b"\x91\x92\xa1a\xa1b"])
def test_a_book_that_cannot_be_read_says_so(data: bytes) -> None:
    with pytest.raises(UsageError, match="book"):
        Standing(ME).restore(data)


def test_a_flood_of_strangers_pushes_out_nobody_of_standing() -> None:
    book = Standing(ME, seen={OLD: DAY})
    for number in range(MOST_PEERS + 10):
        book.heard(Peer(number.to_bytes(32, "big")), 0)
    assert len(book) == MOST_PEERS
    assert book.has(OLD)
