"""Names of peers: ours and libp2p's."""

import base58
import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.net.hive.peer_id import (
    libp2p_id,
    libp2p_name,
    peer_of_address,
    peer_of_id,
    way_to,
)
from giaann_p2p.swarm.wire.identity import Identity, Peer

ME = Identity.from_seed(bytes(range(32))).peer
NAME = libp2p_name(ME)
RSA = "QmSoLPppuBtQSGwKDZT2M73ULpjvfd3aZ6ha4oFGL1KrGM"


def test_both_names_are_one_key() -> None:
    assert NAME.startswith("12D3KooW")
    assert peer_of_id(libp2p_id(ME)) == ME
    assert peer_of_id(base58.b58decode(NAME)) == ME


@pytest.mark.parametrize(
    ("address", "way"),
    [
        (f"/ip4/127.0.0.1/tcp/4100/p2p/{NAME}", "/ip4/127.0.0.1/tcp/4100"),
        (f"/ip4/1.2.3.4/udp/1/quic-v1/p2p/{NAME}", "/ip4/1.2.3.4/udp/1/quic-v1"),
        (
            f"/ip4/1.2.3.4/tcp/1/p2p/{RSA}/p2p-circuit/p2p/{NAME}",
            f"/ip4/1.2.3.4/tcp/1/p2p/{RSA}/p2p-circuit",
        ),
    ],
)
def test_an_address_is_a_way_and_a_peer(address: str, way: str) -> None:
    assert peer_of_address(address) == ME
    assert way_to(address) == way


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (f"/ip4/127.0.0.1/tcp/4100/p2p/{RSA}", "is not that of an Ed25519 key"),
        ("/ip4/127.0.0.1/tcp/4100", "names no peer"),
        (f"/ip4/127.0.0.1/tcp/4100/p2p/{NAME[:-1]}", "is invalid: its libp2p id"),
        ("/ip4/127.0.0.1/tcp/4100/p2p/0OIl", "does not end in a peer's libp2p id"),
        ("/ip4/127.0.0.1/tcp/4100/p2p/" + "1" * 150, "does not end in a peer's libp2p id"),
        (f"/ip4/127.0.0.1/tcp/1/p2p/{NAME}/p2p-circuit", "does not end in a peer's libp2p id"),
        ("/ip4/$(reboot)/p2p/" + NAME, "does not consist of parts like"),
    ],
)
def test_what_leads_to_no_peer_of_ours(address: str, words: str) -> None:
    with pytest.raises(UsageError, match=words.replace("(", r"\(")):
        peer_of_address(address)


@pytest.mark.parametrize("number", [b"", ME, libp2p_id(ME)[:-1], libp2p_id(ME) + b"\0"])
def test_what_is_no_id(number: bytes) -> None:
    with pytest.raises(UsageError, match="Ed25519"):
        peer_of_id(number)
    if len(number) != 32:
        with pytest.raises(UsageError, match="has 32 bytes"):
            libp2p_id(Peer(number))


def test_a_key_that_anybody_can_sign_for_is_no_peers() -> None:
    for key in (bytes(32), b"\1" + bytes(31), b"\xff" * 32):
        with pytest.raises(UsageError, match="anybody can sign for"):
            peer_of_id(libp2p_id(Peer(key)))
