"""Noise XX as libp2p uses it, for the side that dials.

Written by hand so that one process can come with any number of keys, and send what no libp2p would.
"""

import asyncio
import hashlib
import hmac
import struct

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

_NAME = b"Noise_XX_25519_ChaChaPoly_SHA256"
_SIGNED = b"noise-libp2p-static-key:"
KEY_HEAD = b"\x08\x01\x12\x20"
"""In front of an Ed25519 public key, as protobuf wants it."""
MOST_SEALED = 65535 - 16


class Cipher:
    """One direction of an encrypted connection."""

    def __init__(self, key: bytes) -> None:
        self._cipher, self._count = ChaCha20Poly1305(key), 0

    def seal(self, data: bytes, also: bytes = b"") -> bytes:
        """Encrypt the next message."""
        return self._cipher.encrypt(self._nonce(), data, also)

    def open(self, data: bytes, also: bytes = b"") -> bytes:
        """Decrypt the next message."""
        return self._cipher.decrypt(self._nonce(), data, also)

    def _nonce(self) -> bytes:
        self._count += 1
        return struct.pack("<IQ", 0, self._count - 1)


class _State:
    """The handshake's hash and chaining key."""

    def __init__(self) -> None:
        self.hash = self.chain = _NAME
        self._cipher: Cipher | None = None
        self.mix_hash(b"")

    def mix_hash(self, data: bytes) -> None:
        self.hash = hashlib.sha256(self.hash + data).digest()

    def mix_key(self, secret: bytes) -> None:
        self.chain, key = derived(self.chain, secret)
        self._cipher = Cipher(key)

    def seal(self, data: bytes) -> bytes:
        sealed = self._cipher.seal(data, self.hash) if self._cipher else data
        self.mix_hash(sealed)
        return sealed

    def open(self, sealed: bytes) -> bytes:
        data = self._cipher.open(sealed, self.hash) if self._cipher else sealed
        self.mix_hash(sealed)
        return data


def derived(chain: bytes, secret: bytes) -> tuple[bytes, bytes]:
    """Return two keys, as Noise's HKDF makes them."""
    early = hmac.digest(chain, secret, "sha256")
    first = hmac.digest(early, b"\x01", "sha256")
    return first, hmac.digest(early, first + b"\x02", "sha256")


def raw_public(key: Ed25519PrivateKey | X25519PrivateKey) -> bytes:
    """Return a key's public half."""
    return key.public_key().public_bytes_raw()


async def handshake(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, identity: Ed25519PrivateKey
) -> tuple[Cipher, Cipher]:
    """Prove to be `identity`; return the ciphers to send and to receive with."""
    state, ephemeral, static = _State(), X25519PrivateKey.generate(), X25519PrivateKey.generate()
    send_frame(writer, _sent(state, raw_public(ephemeral)) + state.seal(b""))
    answer = await read_frame(reader)
    theirs = _public(answer[:32])
    state.mix_hash(answer[:32])
    state.mix_key(ephemeral.exchange(theirs))
    their_static = _public(state.open(answer[32:80]))
    state.mix_key(ephemeral.exchange(their_static))
    state.open(answer[80:])
    sealed = state.seal(raw_public(static))
    state.mix_key(static.exchange(theirs))
    signature = identity.sign(_SIGNED + raw_public(static))
    key = KEY_HEAD + raw_public(identity)
    payload = b"\x0a" + bytes([len(key)]) + key + b"\x12" + bytes([len(signature)]) + signature
    send_frame(writer, sealed + state.seal(payload))
    out, back = derived(state.chain, b"")
    return Cipher(out), Cipher(back)


def send_frame(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Write one message of Noise."""
    writer.write(len(data).to_bytes(2, "big") + data)


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """Read one message of Noise."""
    return await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))


def _sent(state: _State, public: bytes) -> bytes:
    state.mix_hash(public)
    return public


def _public(raw: bytes) -> X25519PublicKey:
    return X25519PublicKey.from_public_bytes(raw)
