"""Addresses that the board carries, from whoever may send any."""

import msgspec
import pytest

from giaann_p2p.errors import MessageError
from giaann_p2p.net.hive.peer_id import libp2p_name
from giaann_p2p.net.hive.ways import MOST_WAYS, Ways
from giaann_p2p.swarm.wire.identity import Identity, Peer

ME, ONE, OTHER = (Identity.from_seed(bytes([number]) * 32).peer for number in range(3))


def way(number: int) -> str:
    return f"/ip4/127.0.0.1/tcp/{number}"


def address(peer: Peer, number: int) -> str:
    return f"{way(number)}/p2p/{libp2p_name(peer)}"


def test_what_a_node_says_of_itself_and_of_others_is_passed_on() -> None:
    ours, theirs = Ways(), Ways()
    theirs.learn(OTHER, Ways().packed(OTHER, [address(OTHER, 7)]))
    ours.learn(ONE, theirs.packed(ONE, [address(ONE, 5), address(ONE, 6)], [OTHER, ONE, ME]))
    assert ours.of(ONE) == [way(5), way(6)]
    assert ours.of(OTHER) == [way(7)]
    assert ours.of(ME) == []


def test_its_own_word_goes_before_that_of_others_and_the_newest_before_older_ones() -> None:
    ways = Ways()
    ways.learn(OTHER, msgspec.msgpack.encode({ONE: [way(1)]}))
    ways.learn(ONE, msgspec.msgpack.encode({ONE: [way(2)]}))
    ways.learn(OTHER, msgspec.msgpack.encode({ONE: [way(3)]}))
    assert ways.of(ONE) == [way(2), way(3), way(1)]
    ways.learn(ONE, msgspec.msgpack.encode({ONE: [way(4)]}))
    assert ways.of(ONE) == [way(4), way(3), way(1)]


def test_nobody_makes_it_keep_much_or_dial_nonsense() -> None:
    ways = Ways(most=5)
    for number in range(20):
        peer = Identity.from_seed(bytes([number]) * 32).peer
        ways.learn(peer, msgspec.msgpack.encode({peer: [way(n) for n in range(50)], ONE: []}))
        ways.learn(ONE, msgspec.msgpack.encode({peer: [way(n) for n in range(50)]}))
    assert (len(ways._own), len(ways._told)) == (5, 5)
    assert len(ways.of(peer)) == MOST_WAYS
    ways.learn(ONE, msgspec.msgpack.encode({b"short": [way(1)], ONE: ["rm -rf /", "x" * 999]}))
    assert ways.of(ONE) == []


@pytest.mark.parametrize("packed", [b"\xc1", b"\x91\xff", b"\x81\xa1a\xc0", bytes(1 << 18)])
def test_what_is_no_message_of_addresses_is_refused(packed: bytes) -> None:
    with pytest.raises(MessageError, match="addresses"):
        Ways().learn(ONE, packed)


def test_a_message_names_as_many_as_fit() -> None:
    ways, peers = Ways(), [Identity.from_seed(bytes([n, 1]) * 16).peer for n in range(200)]
    long = [f"/dns4/{'a' * 150}{n}/tcp/1" for n in range(MOST_WAYS)]
    for peer in peers:
        ways.learn(peer, msgspec.msgpack.encode({peer: long}))
    assert len(ways.of(peers[0])) == MOST_WAYS
    taken = Ways()
    taken.learn(ONE, ways.packed(ONE, [address(ONE, 5)], peers))
    assert taken.of(ONE) == [way(5)]
    assert taken.of(peers[0]) == long
