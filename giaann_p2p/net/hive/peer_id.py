"""Conversion between the two names of a peer: ours, and libp2p's.

Both are the peer's Ed25519 public key: a libp2p id has a few bytes in front of it. So the id at the
other end of a libp2p connection, which is proved in the handshake, proves our peer as well. Ids of
other kinds of key are only a hash of the key, and no peer of ours has one.
"""

import base58

from giaann_p2p.errors import UsageError
from giaann_p2p.swarm.wire.identity import PEER_BYTES, Peer, is_nobodys
from giaann_p2p.swarm.wire.link import fault_of

_HEAD = b"\x00\x24\x08\x01\x12\x20"
"""An identity multihash of 36 bytes: a public key of type 1, Ed25519, of 32 bytes."""
_PART = "/p2p/"
_MOST_LETTERS = 80


def libp2p_id(peer: Peer) -> bytes:
    """Return a peer's libp2p id."""
    if len(peer) != PEER_BYTES:
        raise UsageError(f"a peer has {PEER_BYTES} bytes; this has {len(peer)}")
    return _HEAD + peer


def libp2p_name(peer: Peer) -> str:
    """Return a peer's libp2p id as it is written in addresses."""
    return base58.b58encode(libp2p_id(peer)).decode()


def peer_of_id(number: bytes) -> Peer:
    """Return the peer with a libp2p id; UsageError if it can be no peer of ours."""
    if len(number) != len(_HEAD) + PEER_BYTES or not number.startswith(_HEAD):
        raise UsageError("its libp2p id is not of an Ed25519 key; peers of a swarm have no other")
    peer = Peer(number[len(_HEAD) :])
    if is_nobodys(peer):
        raise UsageError("its libp2p id is of a key that anybody can sign for")
    return peer


def peer_of_address(address: str) -> Peer:
    """Return the peer that an address leads to; UsageError says what is wrong with it."""
    if why := fault_of(address):
        raise UsageError(f"the address {address[:80]!r} {why}")
    name = address.rpartition(_PART)[2]
    try:
        return peer_of_id(_decoded(name))
    except ValueError:
        raise UsageError(f"the address {address[:80]!r} ends in no peer's libp2p id") from None
    except UsageError as error:
        raise UsageError(f"the peer of the address {address[:80]!r} cannot be: {error}") from None


def way_to(address: str) -> str:
    """Return an address without its /p2p/ part, as libp2p wants it beside the id."""
    return address.rpartition(_PART)[0]


def _decoded(name: str) -> bytes:
    if len(name) > _MOST_LETTERS:  # decoding takes the square of its length
        raise ValueError
    return base58.b58decode(name)
