"""Standing is earned by being seen, survives restarts, and no claim or flood gives or takes it."""

from itertools import pairwise

import msgspec
import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.swarm.members.standing import DAY, FOUNDING, MOST_PEERS, NOTED_EVERY, Standing
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.record import LIFETIME

ME, OLD, NEW = (Peer(bytes([n]) * 32) for n in range(3))


def _seen(book: Standing, peer: Peer, start: float, end: float, every: float = 10.0) -> None:
    now = start
    while now <= end:
        book.heard(peer, now)
        now += every


def test_who_was_there_at_the_first_look_has_it_whenever_its_next_record_comes() -> None:
    book = Standing(ME)
    book.heard(OLD, 0)
    book.heard(NEW, 0.1)
    assert book.has(OLD)
    assert book.has(NEW)
    book.heard(OLD, 10)
    assert book.has(NEW)
    assert book.copy().has(NEW)


def test_who_is_silent_is_credited_for_the_lifetime_of_a_record_at_most() -> None:
    book = Standing(ME)
    book.heard(NEW, 0)
    _seen(book, OLD, 0, 100)
    assert book.seconds(NEW) == LIFETIME
    assert not book.has(NEW)


@pytest.mark.parametrize("age", [30.0, FOUNDING, DAY])
def test_a_newcomer_has_none_for_half_as_long_as_the_oldest(age: float) -> None:
    book = Standing(ME)
    _seen(book, OLD, 0, age)
    book.heard(NEW, age)
    assert book.has(OLD)
    assert not book.has(NEW)
    _seen(book, OLD, age, 2 * age)
    _seen(book, NEW, age, 2 * age)
    assert book.has(NEW)


def test_a_swarm_is_young_until_someone_was_seen_for_some_minutes() -> None:
    book = Standing(ME)
    _seen(book, OLD, 0, FOUNDING - 10)
    assert book.is_young
    book.heard(OLD, FOUNDING)
    assert not book.is_young


def test_a_young_book_is_saved_often_and_an_old_one_every_few_minutes() -> None:
    book, saved = Standing(ME), list[float]()
    for now in range(0, 4000, 5):
        book.heard(OLD, now)
        saved += [now] * len(book.note())
    assert saved[:6] == [10, 20, 30, 40, 50, 65]
    assert [b - a for a, b in pairwise(saved)][-5:] == [NOTED_EVERY] * 5


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


def _restarted(saved: float, again: float) -> Standing:
    """Return the book of a peer that knew OLD for a minute, restarted, and saw it again."""
    book = Standing(ME)
    _seen(book, OLD, saved - 60, saved)
    one = Standing(ME)
    one.restore(book.packed())
    one.heard(OLD, again)
    return one


def test_who_was_there_before_and_after_a_restart_was_there_meanwhile() -> None:
    assert _restarted(1000, 1040).seconds(OLD) == 100
    assert _restarted(1000, 9000).seconds(OLD) == 120  # twice what it had at most
    assert _restarted(1000, 900).seconds(OLD) == 60  # the clock was set back
    book = _restarted(1000, 1040)
    book.heard(NEW, 1040)
    _seen(book, OLD, 1040, 1130)
    _seen(book, NEW, 1040, 1130)
    assert not book.has(NEW)
    book.heard(OLD, 1135)  # it is credited once
    assert book.seconds(OLD) == 195


def test_who_is_not_there_after_a_restart_is_not_credited() -> None:
    book = Standing(ME)
    _seen(book, OLD, 940, 1000)
    _seen(book, NEW, 940, 1000)
    one = Standing(ME)
    one.restore(book.packed())
    _seen(one, OLD, 1030, 1030 + LIFETIME + 10)
    one.heard(NEW, 1030 + LIFETIME + 10)
    assert one.seconds(NEW) == 60


def test_who_is_heard_within_the_lifetime_of_a_record_after_a_restart_was_there() -> None:
    book = Standing(ME)
    _seen(book, OLD, 940, 1000)
    _seen(book, NEW, 940, 1000)
    one = Standing(ME)
    one.restore(book.packed())
    one.heard(OLD, 1030)
    one.heard(NEW, 1030 + LIFETIME)
    assert one.seconds(NEW) == 120


def test_names_of_another_length_are_ignored() -> None:
    one = Standing(ME)
    one.restore(msgspec.msgpack.encode([(b"short", 60), (OLD, 60)]))
    assert len(one) == 1


def test_a_book_of_an_earlier_release_has_no_time() -> None:
    one = Standing(ME)
    one.restore(msgspec.msgpack.encode([(OLD, 60)]))
    one.heard(OLD, 1e9)
    assert one.seconds(OLD) == 60


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
