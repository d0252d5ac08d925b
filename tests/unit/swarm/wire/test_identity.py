"""Who said what: keys, signatures and names."""

import itertools
from contextlib import suppress

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from giaann_p2p.errors import UsageError
from giaann_p2p.swarm.wire.identity import (
    _OWN,
    _SMALL,
    Identity,
    Peer,
    from_text,
    is_nobodys,
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


def test_what_was_signed_elsewhere_is_verified() -> None:
    signature = bytes.fromhex(
        "8bf18e795598e394cf7050ad294de3c3cb8b0b874c150e4a15916f65ed29293c"
        "c2e739a438565a886113f3a7dd86fc7163784c546ccf694a14a38cbf94a77806"
    )
    assert verified(ONE.peer, "record", b"signed elsewhere", signature)
    assert not verified(ONE.peer, "record", b"signed nowhere", signature)
    assert not verified(OTHER.peer, "record", b"signed elsewhere", signature)


def test_of_what_is_signed_here_the_last_few_are_kept() -> None:
    made = [(ONE.peer, "kind", b"%d" % n, ONE.sign("kind", b"%d" % n)) for n in range(100)]
    assert len(_OWN) < 10
    assert all(itertools.starmap(verified, made))


@pytest.mark.parametrize("signature", [b"", bytes(63), bytes(64), bytes(65), b"\xff" * 64])
def test_what_is_no_signature_verifies_nothing(signature: bytes) -> None:
    assert not verified(ONE.peer, "record", b"data", signature)


@pytest.mark.parametrize("key", [b"", bytes(31), b"\xff" * 32, bytes(33)])
def test_what_is_no_key_has_signed_nothing(key: bytes) -> None:
    assert not verified(Peer(key), "record", b"data", ONE.sign("record", b"data"))


PRIME = 2**255 - 19
D = -121665 * pow(121666, -1, PRIME) % PRIME
Point = tuple[int, int]


def plus(one: Point, other: Point) -> Point:
    (a, b), (x, y) = one, other
    both = D * a * b * x * y
    return (
        (a * y + b * x) * pow(1 + both, -1, PRIME) % PRIME,
        (b * y + a * x) * pow(1 - both, -1, PRIME) % PRIME,
    )


def points(y: int) -> list[Point]:
    """Return the points of the curve with this y."""
    square = (y * y - 1) * pow(D * y * y + 1, -1, PRIME) % PRIME
    x = pow(square, (PRIME + 3) // 8, PRIME)
    roots = {x * pow(2, k * (PRIME - 1) // 4, PRIME) % PRIME for k in range(4)}
    return [(root, y) for root in sorted(roots) if root * root % PRIME == square]


def test_keys_of_small_order_are_the_eight_that_there_are_however_they_are_written() -> None:
    zero: Point = (0, 1)
    found = {point for y in _SMALL for point in points(y)}
    assert len(found) == 8
    for point in found:
        double = plus(point, point)
        assert plus(plus(double, double), plus(double, double)) == zero
    assert {plus(one, other) for one in found for other in found} == found  # a group: no more
    for number in [*_SMALL, *range(PRIME, 2**255)]:
        for sign in (0, 1 << 255):
            assert is_nobodys(Peer((number | sign).to_bytes(32, "little")))


def test_a_key_that_anybody_can_sign_for_has_signed_nothing() -> None:
    made_up = [(sign.to_bytes(32, "little") + bytes(32)) for sign in (1, PRIME - 1)]
    for number in (1, 1 | 1 << 255, PRIME + 1, PRIME - 1):
        key = number.to_bytes(32, "little")
        forged = 0
        for count in range(50):
            data = b"anything %d" % count
            for signature in made_up:
                with suppress(InvalidSignature):
                    Ed25519PublicKey.from_public_bytes(key).verify(signature, b"giaann x\0" + data)
                    forged += 1
                assert not verified(Peer(key), "x", data, signature)
        assert forged  # else this test tries nothing


def test_a_usual_key_is_somebodys() -> None:
    for number in range(1000):
        assert not is_nobodys(Identity.from_seed(number.to_bytes(32, "big")).peer)


def test_a_kind_cannot_reach_into_the_data() -> None:
    with pytest.raises(UsageError, match=r"not have a zero byte: 're\\x00cord'"):
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
