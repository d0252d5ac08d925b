"""A peer's identity: an Ed25519 key pair, whose public half is the peer's name.

Signatures are domain-separated: `kind` is part of the signed bytes, so a signature of one kind of
value never verifies for another.

Two sorts of keys are rejected, so no signature of theirs verifies: keys of small order, because
anybody can forge a signature that verifies for them; and non-canonical encodings of a point,
because they would give a peer two names.
"""

import base64
import re
from collections import deque
from functools import lru_cache
from typing import Annotated, NewType

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)

from giaann_p2p.errors import UsageError

Peer = NewType("Peer", bytes)
"""A peer's public key, 32 bytes."""

PEER_BYTES = 32
SIGNATURE_BYTES = 64
PeerField = Annotated[Peer, msgspec.Meta(min_length=PEER_BYTES, max_length=PEER_BYTES)]
"""A peer's public key as a field of a message."""
_PRIME = (1 << 255) - 19
"""The prime of the field that Ed25519 is defined over."""
_WITHOUT_SIGN = (1 << 255) - 1
_EIGHTH = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
_SMALL = frozenset([0, 1, _PRIME - 1, _EIGHTH, _PRIME - _EIGHTH])
"""The y coordinates of the eight points whose order divides 8."""
_OWN: deque[tuple[Peer, str, bytes, bytes]] = deque(maxlen=8)
"""The latest signatures that this process made, which need no verification. A peer merges its own
record like any other, right after signing it, and verifying takes twice as long as signing."""
_TEXT_LENGTH = 52
_SHORT = 8


class Identity:
    """A peer's private key, with which it signs."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.peer = Peer(key.public_key().public_bytes_raw())

    def __repr__(self) -> str:
        return f"<Identity of {name_of(self.peer)}>"

    @classmethod
    def from_seed(cls, seed: bytes) -> "Identity":
        """Return the identity that a seed determines: 32 random bytes that must stay secret."""
        if len(seed) != PEER_BYTES:
            raise UsageError(f"an identity's seed has {PEER_BYTES} bytes; this has {len(seed)}")
        return cls(Ed25519PrivateKey.from_private_bytes(seed))

    def sign(self, kind: str, data: bytes) -> bytes:
        """Sign bytes that encode a value of this kind, and return the signature."""
        signature = self._key.sign(_signed(kind, data))
        _OWN.append((self.peer, kind, data, signature))
        return signature


@lru_cache(maxsize=1024)  # one process may run several peers, which all verify the same records
def verified(peer: Peer, kind: str, data: bytes, signature: bytes) -> bool:
    """Return whether a peer signed these bytes as a value of this kind."""
    if (peer, kind, data, signature) in _OWN:
        return True
    if is_nobodys(peer):
        return False
    try:
        Ed25519PublicKey.from_public_bytes(peer).verify(signature, _signed(kind, data))
    except (InvalidSignature, ValueError):
        return False
    return True


def is_nobodys(peer: Peer) -> bool:
    """Return whether a key must be rejected: it has small order or a non-canonical encoding."""
    y = int.from_bytes(peer, "little") & _WITHOUT_SIGN
    return y in _SMALL or y >= _PRIME


def name_of(peer: Peer) -> str:
    """Return a peer's short name, for people: it tells peers apart, but does not prove identity."""
    return to_text(peer)[:_SHORT]


def peer_of(text: str) -> Peer:
    """Parse a peer's full name, as `to_text` prints it; UsageError says what is wrong."""
    return Peer(from_text(text, "a peer's name"))


def to_text(number: bytes) -> str:
    """Return the 32 bytes that name a peer or a swarm as text: 52 letters and digits."""
    return base64.b32encode(number).decode().rstrip("=").lower()


def from_text(text: str, what: str) -> bytes:
    """Parse the result of `to_text`, in any case; UsageError says what is wrong with `what`."""
    letters = text.strip().lower()
    if len(letters) != _TEXT_LENGTH:
        raise UsageError(
            f"{what} has {_TEXT_LENGTH} letters and digits; this has {len(letters)}: copy it whole"
        )
    if wrong := re.search("[^a-z2-7]", letters):
        raise UsageError(f"{what} has only letters a to z and digits 2 to 7, not {wrong[0]!r}")
    number = base64.b32decode(letters.upper() + "====")
    if to_text(number) != letters:
        raise UsageError(f"{what} cannot end in {letters[-1]!r}: copy it again")
    return number


def _signed(kind: str, data: bytes) -> bytes:
    if "\0" in kind:
        raise UsageError(f"the kind of a signed value must not have a zero byte: {kind!r}")
    return b"giaann " + kind.encode() + b"\0" + data
