"""Whatever is in the files of a peer's folder, it is what was written there, or told of.

The store's own files: `test_disk_hostile.py`.
"""

import contextlib
import json
import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bootstrap.options import BootstrapOptions
from giaann_p2p.errors import DamagedError, TokenError, UsageError
from giaann_p2p.local.status_file import READY, Status, StatusFile
from giaann_p2p.net.hive.key_file import open_key_file, write_key_file
from giaann_p2p.node.members.acquaintances import MOST_PEERS, Acquaintances
from giaann_p2p.node.members.membership import Membership
from giaann_p2p.node.members.standing_file import StandingFile
from giaann_p2p.store.disk.small_file import read_json
from giaann_p2p.swarm.members.standing import Standing
from giaann_p2p.swarm.replication.known_sets import KnownSets
from giaann_p2p.swarm.wire.admission import Admission
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.link import fault_of
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.record import missing_of
from peers.compute.options import ComputeOptions
from peers.folder import Folder
from peers.options import Options, options
from peers.storage.options import StorageOptions
from tests.helpers_hostile import few, hostile
from tests.helpers_swarm import applied
from tests.property.test_swarm_parsers_hostile import ADDRESS, MANIFEST, PEER, REVOKED, TOKEN

QUIET = logging.getLogger("tests.quiet")
QUIET.disabled = True
within = settings(
    few, suppress_health_check=[*HealthCheck]
)  # the folder is the same for all examples
"""One folder serves all examples: each puts its own file there."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("peer")


PEERS = [[ADDRESS], [ADDRESS.replace("113", "114"), ADDRESS]]
KNOWN = (
    msgspec.json.encode({"format": 1, "peers": PEERS, "names": ["a", "b"], "sequence": 1 << 40}),
    msgspec.json.encode({"format": 1, "peers": PEERS[:1]}),
)


@within
@given(hostile(*KNOWN))
def test_known_peers_are_addresses_or_nobody(folder: Path, data: bytes) -> None:
    path = folder / "known-peers.json"
    path.write_bytes(data)
    found = Acquaintances(path, QUIET)
    assert len(found._peers) <= MOST_PEERS
    assert not [one for one in found.addresses if fault_of(one)]
    assert 0 <= found.sequence < 1 << 63
    found.write()
    again = Acquaintances(path, QUIET)
    assert (again.addresses, again.sequence) == (found.addresses, found.sequence)


BOOK = Standing(PEER.peer, seen={PEER.peer: 90.0, Peer(bytes(32)): 1e6}).packed()


@within
@given(hostile(BOOK))
def test_a_book_of_standing_has_peers_and_seconds_or_nothing(folder: Path, data: bytes) -> None:
    (folder / "standing").write_bytes(data)
    book = Standing(PEER.peer)
    StandingFile(folder / "standing", QUIET).restore(book)
    assert all(len(peer) == 32 and seconds >= 0 for peer, seconds in book._seen.items())
    again = Standing(PEER.peer)
    again.restore(book.packed())
    assert again._seen == book._seen


def _note() -> bytes:
    known = KnownSets()
    known.saw(3, applied(1, 2), 100, 50.0)
    known.saw(5, applied(1), 10, 51.0)
    return known.packed()


@within
@given(hostile(_note()))
def test_what_was_known_is_of_shards_that_there_are_or_nothing(data: bytes) -> None:
    known = KnownSets()
    with contextlib.suppress(UsageError):
        known.restore(data, 8, 8, 60.0)
    assert all(shard < 8 for shard in known.of())
    known.compare({shard: [] for shard in known.of()}, 60.0)
    assert missing_of(known.missing, 8).seen <= 60
    again = KnownSets()
    again.restore(known.packed(), 8, 8, 60.0)
    assert again.packed() == known.packed()


@within
@given(hostile(msgspec.json.encode(Status(state=READY, pid=5, link="giaann:x", peer="12D3"))))
def test_a_status_is_one_or_told_of(folder: Path, data: bytes) -> None:
    file = StatusFile(folder / "status.json")
    (folder / "status.json").write_bytes(data)
    try:
        found = file.read()
    except DamagedError:
        return
    assert found is not None
    assert msgspec.convert(msgspec.to_builtins(found), Status) == found


@pytest.mark.parametrize("data", [b'{"state":"\xff"}', b'{"more":' + b"[" * 100_000])
def test_a_status_that_once_raised_something_else(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "s.json").write_bytes(data)
    with pytest.raises(DamagedError, match=r"s\.json is damaged"):
        read_json(tmp_path / "s.json", Status)


@pytest.fixture(scope="module")
def key(folder: Path) -> bytes:
    write_key_file(folder / "whole.key", b"\1" * 32)
    return (folder / "whole.key").read_bytes()


@within
@given(st.data())
def test_a_key_is_whole_or_none(folder: Path, key: bytes, data: st.DataObject) -> None:
    path = folder / "peer.key"
    path.write_bytes(data.draw(hostile(key)))
    try:
        found = open_key_file(path)
    except UsageError:
        assert path.read_bytes() != key
        return
    assert found.peer == PEER.peer
    assert path.read_bytes() == key


@within
@given(hostile(MANIFEST.to_bytes(), Manifest.founded(PEER, "wasps").to_bytes()))
def test_a_manifest_is_the_swarms_or_told_of(folder: Path, data: bytes) -> None:
    (folder / "manifest.json").write_bytes(data)
    try:
        assert Folder(folder).manifest(MANIFEST.swarm_id) == MANIFEST
    except UsageError:
        assert data != MANIFEST.to_bytes()


@within
@given(hostile(b'{"/ip4/0.0.0.0/tcp/0":"/ip4/0.0.0.0/tcp/4100"}'))
def test_the_last_ports_are_texts_or_forgotten(folder: Path, data: bytes) -> None:
    (folder / "listen.json").write_bytes(data)
    (found,) = Folder(folder).listen(["/ip4/0.0.0.0/tcp/0"])
    assert isinstance(found, str)


@within
@given(hostile(str(TOKEN).encode(), str(TOKEN)[:200].encode()))
def test_a_token_is_one_or_told_of(folder: Path, data: bytes) -> None:
    (folder / "token").write_bytes(data)
    try:
        token = Membership(folder).token
    except TokenError as error:
        told = str(error)
    else:
        assert token is not None
        return
    assert str(folder / "token") in told


@within
@given(hostile(REVOKED.to_bytes(), REVOKED.next(PEER, set()).to_bytes()))
def test_the_revoked_are_the_founders_or_nobody(folder: Path, data: bytes) -> None:
    (folder / "revoked").write_bytes(data)
    admission = Admission(MANIFEST)
    kept = Membership(folder).revoked()
    assert kept is not None
    try:
        admission.learn(kept)
    except TokenError:
        assert admission.revoked.number == 0
        return
    assert admission.revoked in (REVOKED, REVOKED.next(PEER, set()))


SETTINGS = {
    StorageOptions: b'join = "x"\ncapacity = "2GiB"\nlisten = ["/ip4/0.0.0.0/tcp/4100"]\n',
    ComputeOptions: b'join = "x"\nslots = 3\nverify = 0.5\nrelay = true\nlog = "json"\n',
    BootstrapOptions: b'new = "bees"\nshards = 64\nmetrics_port = -1 # none\n[a]\n',
}


@pytest.mark.parametrize("kind", SETTINGS)
@within
@given(st.data())
def test_settings_can_be_or_are_told_of(
    folder: Path, kind: type[Options], data: st.DataObject
) -> None:
    file = folder / "peer.toml"
    file.write_bytes(data.draw(hostile(*SETTINGS.values())))
    told: Any = ""
    try:
        found = options(kind, {}, file)
    except UsageError as error:
        told = str(error)
    if not told:
        assert msgspec.convert(msgspec.structs.asdict(found), kind) == found
    else:
        assert "peer.toml" in told or " is missing. " in told


@pytest.mark.parametrize(
    "data",
    [b'join = "\xff"', b"slots = " + b"9" * 5000, b"join = " + b"[" * 5000],
    ids=["no UTF-8", "digits", "deep"],
)
def test_settings_that_once_raised_something_else(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "peer.toml").write_bytes(data)
    with pytest.raises(UsageError, match=r"peer\.toml is not TOML: "):
        options(ComputeOptions, {}, tmp_path / "peer.toml")


def test_what_is_tried_here_is_read_where_nothing_was_changed(tmp_path: Path) -> None:
    for kind, text in SETTINGS.items():
        (tmp_path / "peer.toml").write_bytes(text.replace(b"[a]\n", b""))
        assert isinstance(options(kind, {}, tmp_path / "peer.toml"), kind)
    (tmp_path / "known-peers.json").write_bytes(KNOWN[0])
    addresses = [one for peer in json.loads(KNOWN[0])["peers"] for one in peer]
    assert Acquaintances(tmp_path / "known-peers.json").addresses == addresses
