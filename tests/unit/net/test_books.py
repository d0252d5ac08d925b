"""What a connection's requests hold, they give back, whichever way they leave."""

import random

import pytest

from giaann_p2p.errors import MessageError
from giaann_p2p.net.bodies import Outgoing
from giaann_p2p.net.books import Books
from giaann_p2p.net.exchange import Exchange
from giaann_p2p.net.frames import Frame, Kind
from giaann_p2p.net.limits import Limits
from giaann_p2p.net.outbox import Outbox
from giaann_p2p.net.room import Room
from giaann_p2p.net.states import LinkState


def books(*, dialled: bool = True) -> Books:
    return Books(
        dialled=dialled,
        now=0.0,
        limits=Limits(),
        outbox=Outbox(number=7, most_urgent=2),
        room_in=Room(1 << 20),
        room_out=Room(1 << 20),
    )


@pytest.mark.parametrize("seed", range(10))
def test_whoever_leaves_gives_all_back(seed: int) -> None:
    rng, held = random.Random(seed), books(dialled=bool(seed % 2))
    exchanges: list[Exchange] = []
    theirs = 1 + seed % 2
    for _ in range(300):
        if exchanges and rng.random() < 0.5:
            held.leave(exchanges.pop(rng.randrange(len(exchanges))))
        else:
            if rng.random() < 0.5:
                exchange = held.enter_mine()
            else:
                exchange, theirs = held.enter_theirs(theirs, LinkState.SERVED), theirs + 2
            exchange.held = rng.randrange(100)
            held.room_in.take(exchange.held)
            exchange.outgoing = Outgoing(Kind.REQUEST, exchange.request, bytes(5))
            held.room_out.take(5)
            held.outbox.add(exchange.outgoing)
            held.alarms.set(exchange.request, rng.random())
            exchanges.append(exchange)
        mine = [one for one in exchanges if held.is_mine(one.request)]
        assert (held.mine, held.theirs) == (len(mine), len(exchanges) - len(mine))
        assert held.room_in.used == sum(one.held for one in exchanges)
        assert held.room_out.used == 5 * len(exchanges)
        assert len(held.outbox) == 1 + len(exchanges)  # and a hello
        assert sorted(held.open) == sorted(one.request for one in exchanges)
    assert sorted(held.alarms.pop(2.0)) == sorted(one.request for one in exchanges)


def test_what_is_done_is_told_from_what_never_was() -> None:
    held = books()
    held.leave(held.enter_mine())
    held.leave(held.enter_theirs(6, LinkState.SERVED))
    one = held.enter_mine()
    frames = {n: Frame(Kind.CANCEL, n, memoryview(b"")) for n in range(9)}
    assert [held.known(frames[number]) for number in (1, 2, 4, 6)] == [None] * 4
    assert held.known(frames[3]) is one
    for number in (0, 5, 7, 8):
        with pytest.raises(
            MessageError, match=f"cancel frame for request {number}, which has not begun"
        ):
            held.known(frames[number])


def test_they_show_what_they_hold() -> None:
    held = books()
    held.room_out.take(1234)
    assert repr(held.enter_mine()) == "<Exchange 1: asking>"
    assert repr(held) == "<Books: asking 1, answering 0, 0 bytes in, 1,234 out>"
