"""The file with a peer's secret key; whoever has the file can act as that peer.

The file has libp2p's own format, because p2pd reads it, too. It is created atomically, and only its
owner may read it. When two processes create it at once, both use the file that was there first.
"""

import os
import secrets
from pathlib import Path

from giaann_p2p.errors import UsageError
from giaann_p2p.store.disk.plain_file import open_plain
from giaann_p2p.swarm.wire.identity import PEER_BYTES, Identity

_HEAD = b"\x08\x01\x12\x40"
"""The header of a private key in libp2p's format: type 1 (Ed25519), 64 bytes of seed and public
key."""
_SIZE = len(_HEAD) + 2 * PEER_BYTES


def open_key_file(path: Path) -> Identity:
    """Return the identity in a key file; create the file with a new identity if it is missing."""
    try:
        data = _read(path)
    except FileNotFoundError:
        write_key_file(path, secrets.token_bytes(PEER_BYTES))
        data = _read(path)
    seed = data[len(_HEAD) :][:PEER_BYTES]
    identity = Identity.from_seed(seed) if len(data) == _SIZE else None
    if identity is None or data != _HEAD + seed + identity.peer:
        raise UsageError(
            f"{path} is not a peer's key: restore the right file, or remove it to become"
            " another peer"
        )
    return identity


def write_key_file(path: Path, seed: bytes) -> None:
    """Create the key file of a seed's identity; leave an existing file as it is."""
    data = _HEAD + seed + Identity.from_seed(seed).peer
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            try:
                os.write(descriptor, data)  # so few bytes are written in full or not at all
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.link(draft, path)
        finally:
            draft.unlink()
        _sync(path.parent)
    except FileExistsError:
        return
    except OSError as error:
        raise UsageError(
            f"the key file {path} cannot be created: {error.strerror}; name one in a folder that"
            " you can write to"
        ) from None


def _read(path: Path) -> bytes:
    try:
        with open_plain(path) as file:
            return file.read(_SIZE + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UsageError(f"the key file {path} cannot be read: {error.strerror}") from None


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
