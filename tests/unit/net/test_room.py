"""Bytes that may be held, here and in what is shared."""

import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.net.room import Room


def test_room_is_taken_here_and_in_what_it_is_part_of_or_not_at_all() -> None:
    house = Room(100)
    one, two = Room(80, house), Room(80, house)
    assert one.take(80)
    assert not one.take(1)
    assert not two.fits(21)
    assert not one.fits(1)
    assert not two.take(21)
    assert two.fits(20)
    assert (one.used, two.used, house.used) == (80, 0, 80)
    assert two.take(20)
    one.give(30)
    assert two.take(30)
    assert repr(house) == "<Room: 100 of 100 bytes>"
    with pytest.raises(UsageError, match="51 bytes were given back, but only 50 are reserved"):
        one.give(51)
