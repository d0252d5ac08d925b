"""A daemon's data folder, locked by one process at a time.

    peer.key          the peer's identity; a copy of it can act as this peer
    manifest.json     the swarm's manifest; checked against the swarm's id at each read
    listen.json       the addresses listened on, so that chosen ports stay the same
    known-peers.json  addresses of peers seen before
    standing          how long a compute or bootstrap peer has seen each storage peer
    store/            a storage peer's store
    opening           exists while a large store is opened, and later if that did not end
    founder.key       the founder's identity, in the folder that founded the swarm
    token, revoked    membership, in a swarm for members only
    edition           the newest edition of the swarm's rules; none if the manifest's rules hold

Small files are written atomically.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from giaann_p2p.errors import DiskError, MessageError, StoreError, UsageError
from giaann_p2p.node.members.membership import Membership
from giaann_p2p.store.disk.small_file import is_there, read_whole, write_whole
from giaann_p2p.store.home import locked
from giaann_p2p.swarm.wire.manifest import MOST_BYTES, Manifest


class Folder:
    """A daemon's data folder: the paths of its files, and a lock while it is entered."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._held = contextlib.ExitStack()
        self._new: list[Path] = []
        """Parent folders created by entering, innermost first; removed at exit if empty."""

    def __repr__(self) -> str:
        return f"<Folder: {self.path}>"

    def __enter__(self) -> "Folder":
        self._new = [folder for folder in self.path.absolute().parents if not is_there(folder)]
        try:
            self._held.enter_context(locked(self.path))
        except DiskError:  # no other daemon is involved
            raise
        except StoreError as error:
            if not self.path.is_dir():
                raise
            raise StoreError(
                f"{error}; is another daemon running in it? Each daemon needs its own --data-dir"
            ) from None
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()
        for folder in self._new:
            with contextlib.suppress(OSError):  # the usual case: it is not empty
                folder.rmdir()

    @contextlib.contextmanager
    def tried(self) -> Iterator[Callable[[], None]]:
        """Undo a failed start: at the context's end, delete all files if the folder was empty.

        The context yields a function; calling it keeps the files.
        """
        made = not any(self.path.iterdir())

        def keep() -> None:
            nonlocal made
            made = False

        try:
            yield keep
        finally:
            for file in self.path.iterdir() if made else ():
                file.unlink()

    @property
    def membership(self) -> Membership:
        """The membership files in the folder: key, token, and list of revoked members."""
        return Membership(self.path)

    @property
    def key(self) -> Path:
        """Path of the file with the peer's identity."""
        return self.path / "peer.key"

    @property
    def founder_key(self) -> Path:
        """Path of the file with the founder's identity."""
        return self.path / "founder.key"

    @property
    def known_peers(self) -> Path:
        """Path of the file with addresses of peers seen before."""
        return self.path / "known-peers.json"

    @property
    def standing(self) -> Path:
        """Path of a peer's book of standing: how long it has seen each storage peer.

        A storage peer keeps this book in its store.
        """
        return self.path / "standing"

    @property
    def store(self) -> Path:
        """Path of the folder with a storage peer's store."""
        return self.path / "store"

    @property
    def opening(self) -> Path:
        """Path of a file that exists while a large store is opened, or if that did not end."""
        return self.path / "opening"

    @property
    def store_bytes(self) -> int:
        """Bytes that a storage peer's store takes on the disk."""
        found = 0
        for file in self.store.glob("*"):
            with contextlib.suppress(FileNotFoundError):  # a snapshot has replaced this log
                found += file.stat().st_size
        return found

    def manifest(self, swarm_id: bytes | None = None) -> Manifest | None:
        """Return the swarm's manifest in the folder, or None.

        Raise UsageError if it belongs to another swarm than `swarm_id`.
        """
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
        """Save the swarm's manifest in the folder."""
        write_whole(self.path / "manifest.json", manifest.to_bytes())

    def listen(self, wanted: Sequence[str]) -> tuple[str, ...]:
        """Return the addresses to listen on: port 0 becomes the port that the last run got."""
        data = read_whole(self.path / "listen.json", MOST_BYTES)
        if data is None:
            return tuple(wanted)
        try:
            last = msgspec.json.decode(data, type=dict[str, str])
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return tuple(wanted)  # the ports of the last run are only a preference
        return tuple(last.get(address, address) for address in wanted)

    def keep_listen(self, wanted: Sequence[str], got: Sequence[str]) -> None:
        """Save the actual listening address for each wanted one, for the next run."""
        pairs = dict(zip(wanted, got, strict=True))
        write_whole(self.path / "listen.json", msgspec.json.encode(pairs))
