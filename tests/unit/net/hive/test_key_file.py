"""The file that makes a peer who it is."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.net.hive.key_file import open_key_file, write_key_file
from giaann_p2p.swarm.wire.identity import Identity


def test_it_is_made_once_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "peer.key"
    first = open_key_file(path)
    assert open_key_file(path).peer == first.peer
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [found.name for found in tmp_path.iterdir()] == ["peer.key"]


def test_a_seed_makes_its_own_identity(tmp_path: Path) -> None:
    path, seed = tmp_path / "peer.key", bytes(range(32))
    write_key_file(path, seed)
    write_key_file(path, bytes(32))  # there is one
    assert open_key_file(path).peer == Identity.from_seed(seed).peer


def test_who_make_it_at_once_are_one_peer(tmp_path: Path) -> None:
    path = tmp_path / "peer.key"
    with ThreadPoolExecutor(8) as pool:
        peers = {identity.peer for identity in pool.map(open_key_file, [path] * 32)}
    assert len(peers) == 1


@pytest.mark.parametrize("change", ["cut", "longer", "other", "empty"])
def test_a_file_that_is_no_key(tmp_path: Path, change: str) -> None:
    path = tmp_path / "peer.key"
    open_key_file(path)
    data = path.read_bytes()
    other = data[:40] + bytes([data[40] ^ 1]) + data[41:]
    path.write_bytes(
        {"cut": data[:-1], "longer": data + b"\0", "other": other, "empty": b""}[change]
    )
    with pytest.raises(UsageError, match="is not a peer's key"):
        open_key_file(path)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be created: No such file"):
        open_key_file(tmp_path / "none" / "peer.key")
    with pytest.raises(UsageError, match="cannot be read"):
        open_key_file(tmp_path)
