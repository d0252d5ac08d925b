"""A daemon's folder, held by one process at a time.

    peer.key          the peer's identity: who has it is the peer
    manifest.json     the swarm's manifest; proved by the swarm's id each time it is read
    listen.json       the addresses that were listened at, so that free ports stay the same
    known-peers.json  addresses of peers that were there
    store/            what a storage peer holds
    founder.key       the swarm's founder's identity, where it was founded
    token, revoked    what makes it a member, in a swarm that not everybody may join

Small files are written whole or not at all.
"""

import contextlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from giaann_p2p.errors import MessageError, StoreError, UsageError
from giaann_p2p.node.files import read_whole, write_whole
from giaann_p2p.node.membership import Membership
from giaann_p2p.store.home import locked
from giaann_p2p.swarm.manifest import MOST_BYTES, Manifest


class Folder:
    """See the module."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._held = contextlib.ExitStack()

    def __repr__(self) -> str:
        return f"<Folder: {self.path}>"

    def __enter__(self) -> "Folder":
        try:
            self._held.enter_context(locked(self.path))
        except StoreError as error:
            raise type(error)(f"{error}; is another daemon running in it? One a folder") from None
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    @property
    def membership(self) -> Membership:
        """What makes it a member."""
        return Membership(self.path)

    @property
    def key(self) -> Path:
        """The peer's identity."""
        return self.path / "peer.key"

    @property
    def founder_key(self) -> Path:
        """The founder's."""
        return self.path / "founder.key"

    @property
    def known_peers(self) -> Path:
        """Addresses of peers that were there."""
        return self.path / "known-peers.json"

    @property
    def store(self) -> Path:
        """What a storage peer holds."""
        return self.path / "store"

    def manifest(self, swarm_id: bytes | None = None) -> Manifest | None:
        """Return the manifest, a swarm's if it is given; None if there is none here yet."""
        data = read_whole(self.path / "manifest.json", MOST_BYTES)
        if data is None:
            return None
        try:
            return Manifest.read(data, swarm_id)
        except MessageError as error:
            raise UsageError(
                f"{self.path / 'manifest.json'}: {error}; give another --data-dir for another swarm"
            ) from None

    def keep_manifest(self, manifest: Manifest) -> None:
        """Have it here from now on."""
        write_whole(self.path / "manifest.json", manifest.to_bytes())

    def listen(self, wanted: Sequence[str]) -> tuple[str, ...]:
        """Return the addresses to listen at: with the ports of last time, where any will do."""
        data = read_whole(self.path / "listen.json", MOST_BYTES)
        if data is None:
            return tuple(wanted)
        try:
            last = msgspec.json.decode(data, type=dict[str, str])
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return tuple(wanted)  # it is only a wish
        return tuple(last.get(address, address) for address in wanted)

    def keep_listen(self, wanted: Sequence[str], got: Sequence[str]) -> None:
        """Note down which addresses those that were wanted came to."""
        pairs = dict(zip(wanted, got, strict=True))
        write_whole(self.path / "listen.json", msgspec.json.encode(pairs))
