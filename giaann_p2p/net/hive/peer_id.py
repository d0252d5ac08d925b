"""Conversion between the two names of a peer: this project's (`Peer`) and libp2p's peer id.

Both contain the peer's Ed25519 public key; a libp2p id only adds a few bytes in front. libp2p
proves the id of the other side in its handshake, and so proves the `Peer` as well. Ids of other key
types are only hashes of a key, so they cannot belong to a peer of a swarm.
"""

from functools import lru_cache

import base58

from giaann_p2p.errors import UsageError
from giaann_p2p.swarm.wire.identity import PEER_BYTES, Peer, is_nobodys
from giaann_p2p.swarm.wire.link import fault_of

_HEAD = b"\x00\x24\x08\x01\x12\x20"
"""The first bytes of every Ed25519 peer id: an identity multihash of 36 bytes that contains a
public key of type 1 (Ed25519) and of 32 bytes."""
_PART = "/p2p/"
"""The part of an address after which the peer's libp2p id follows."""
_MOST_LETTERS = 80
"""The most letters of a libp2p id that is decoded; a peer's id has 52."""


def libp2p_id(peer: Peer) -> bytes:
    """Return a peer's libp2p id in binary form."""
    if len(peer) != PEER_BYTES:
        raise UsageError(f"a peer has {PEER_BYTES} bytes; this has {len(peer)}")
    return _HEAD + peer


@lru_cache(maxsize=1 << 14)  # the same peers are named again and again, and base58 is slow
def libp2p_name(peer: Peer) -> str:
    """Return a peer's libp2p id in base58, as addresses contain it."""
    return base58.b58encode(libp2p_id(peer)).decode()


def peer_of_id(number: bytes) -> Peer:
    """Return the peer with a libp2p id; raise UsageError if no peer of a swarm can have that id."""
    if len(number) != len(_HEAD) + PEER_BYTES or not number.startswith(_HEAD):
        raise UsageError("its libp2p id is not that of an Ed25519 key, as every peer's is")
    peer = Peer(number[len(_HEAD) :])
    if is_nobodys(peer):
        raise UsageError("its libp2p id is that of a weak key, which anybody can sign for")
    return peer


@lru_cache(maxsize=1 << 12)  # each join looks at all addresses that may be seeds
def peer_of_address(address: str) -> Peer:
    """Return the peer that an address leads to; raise UsageError if the address is invalid."""
    if why := fault_of(address):
        raise UsageError(f"the address {address[:80]!r} {why}")
    name = address.rpartition(_PART)[2]
    try:
        return peer_of_id(_decoded(name))
    except ValueError:
        raise UsageError(
            f"the address {address[:80]!r} does not end in a peer's libp2p id"
        ) from None
    except UsageError as error:
        raise UsageError(f"the peer of the address {address[:80]!r} is invalid: {error}") from None


def way_to(address: str) -> str:
    """Return an address without its /p2p/ part, because p2pd takes the peer's id separately."""
    return address.rpartition(_PART)[0]


def _decoded(name: str) -> bytes:
    if len(name) > _MOST_LETTERS:  # decoding takes quadratic time
        raise ValueError
    return base58.b58decode(name)
