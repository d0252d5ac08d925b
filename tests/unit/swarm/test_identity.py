"""Who said what: keys, signatures and names."""

import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.swarm.identity import (
    Identity,
    Peer,
    from_text,
    name_of,
    peer_of,
    to_text,
    verified,
)

ONE, OTHER = (Identity.from_seed(bytes([n]) * 32) for n in (1, 2))


def test_a_seed_is_an_identity_for_good() -> None:
    # the first test vector of RFC 8032
    seed = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    peer = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    assert Identity.from_seed(seed).peer.hex() == peer
    assert Identity.from_seed(seed).sign("x", b"y") == Identity.from_seed(seed).sign("x", b"y")
    with pytest.raises(UsageError, match="has 32 bytes; this has 31"):
        Identity.from_seed(bytes(31))


def test_only_what_the_peer_signed_is_verified() -> None:
    signature = ONE.sign("record", b"data")
    assert verified(ONE.peer, "record", b"data", signature)
    assert not verified(OTHER.peer, "record", b"data", signature)
    assert not verified(ONE.peer, "manifest", b"data", signature)
    assert not verified(ONE.peer, "record", b"date", signature)
    for at in range(len(signature)):
        changed = signature[:at] + bytes([signature[at] ^ 1]) + signature[at + 1 :]
        assert not verified(ONE.peer, "record", b"data", changed)


@pytest.mark.parametrize("signature", [b"", bytes(63), bytes(64), bytes(65), b"\xff" * 64])
def test_what_is_no_signature_verifies_nothing(signature: bytes) -> None:
    assert not verified(ONE.peer, "record", b"data", signature)


@pytest.mark.parametrize("key", [b"", bytes(31), b"\xff" * 32, bytes(33)])
def test_what_is_no_key_has_signed_nothing(key: bytes) -> None:
    assert not verified(Peer(key), "record", b"data", ONE.sign("record", b"data"))


def test_a_kind_cannot_reach_into_the_data() -> None:
    with pytest.raises(UsageError, match=r"no zero byte: 're\\x00cord'"):
        ONE.sign("re\0cord", b"data")


def test_names_can_be_read_and_come_back() -> None:
    text = "rkeops4p2fn5ma3wdzthu7lzobhyxdnp6bvsmr6l3yvbn5iqb3yd2vqa"[:51]
    assert len(to_text(ONE.peer)) == 52
    assert peer_of(to_text(ONE.peer)) == ONE.peer
    assert peer_of(f" {to_text(ONE.peer).upper()}\n") == ONE.peer
    assert to_text(ONE.peer).startswith(name_of(ONE.peer))
    assert len(name_of(ONE.peer)) == 8
    assert repr(ONE) == f"<Identity of {name_of(ONE.peer)}>"
    assert from_text("a" * 52, "a swarm") == bytes(32)
    for wrong, why in {
        text: "has 52 letters and digits; this has 51: copy it whole",
        "": "this has 0",
        "1" + "a" * 51: "digits 2 to 7, not '1'",
        "é" + "a" * 51: "not 'é'",
        "a" * 51 + "b": "cannot end in 'b': copy it again",
    }.items():
        with pytest.raises(UsageError, match=f"a peer's name.*{why}"):
            peer_of(wrong)
