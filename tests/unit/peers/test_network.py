"""A daemon's ports stay the same, and the manifest is asked for until it is there."""

import asyncio
import re
import socket
from pathlib import Path

import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.net.hive.daemon import DaemonError
from giaann_p2p.net.hive.peer_id import libp2p_name
from giaann_p2p.node.members.acquaintances import Acquaintances
from giaann_p2p.node.members.joined_host import JoinedHost
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.manifest import Manifest
from peers import network as module
from peers.folder import Folder
from peers.network import manifest_of, network, relays_of
from peers.options import Options

ANY = Options(listen=("/ip4/127.0.0.1/tcp/0",))
MANIFEST = Manifest.founded(Identity.from_seed(b"f" * 32), "bees")


def began(folder: Path, options: Options = ANY, named: tuple[str, ...] = ()) -> JoinedHost:
    """Be on the network for a moment; return what it was like."""

    async def main() -> JoinedHost:
        with Folder(folder) as held:
            known = Acquaintances(held.known_peers)
            async with network(held, options, named, known) as place:
                return place

    return asyncio.run(main())


def port_of(place: JoinedHost) -> int:
    found = re.fullmatch(r"/ip4/127\.0\.0\.1/tcp/(\d+)", place.host.config.listen[0])
    assert found is not None
    return int(found[1])


def test_others_are_told_of_loopback_only_by_who_has_nothing_else(tmp_path: Path) -> None:
    assert began(tmp_path / "here").addresses == began(tmp_path / "here").host.addresses != ()
    place = began(tmp_path / "all", Options(listen=("/ip4/0.0.0.0/tcp/0",)))
    here = [one for one in place.host.addresses if one.startswith("/ip4/127.")]
    assert here
    others = tuple(one for one in place.host.addresses if one not in here)
    assert place.addresses == (others or place.host.addresses)


def test_relays_are_other_peers_that_can_be_dialled_themselves() -> None:
    peers = [Identity.from_seed(bytes([number]) * 32).peer for number in range(5)]
    named = [f"/ip4/127.0.0.1/tcp/7/p2p/{libp2p_name(peer)}" for peer in peers]
    behind = f"{named[4]}/p2p-circuit/p2p/{libp2p_name(peers[0])}"
    also = named[0].replace("tcp/7", "tcp/8")
    assert relays_of(["rubbish", behind, named[0], also, *named[1:]]) == tuple(named[:3])
    assert relays_of([behind]) == ()


def test_who_wants_relays_and_knows_none_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    here = Options(listen=("/ip4/127.0.0.1/tcp/0",), relay=True)
    assert began(tmp_path, here).host.config.trusted_relays == ()
    assert "--relay: no known peer can relay yet" in caplog.text
    caplog.clear()
    relay = f"/ip4/127.0.0.1/tcp/7/p2p/{libp2p_name(Identity.from_seed(bytes(32)).peer)}"
    assert began(tmp_path, here, (relay,)).host.config.trusted_relays == (relay,)
    assert caplog.text == ""


def test_a_free_port_stays_the_same_until_another_takes_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = began(tmp_path)
    assert port_of(began(tmp_path)) == port_of(first)
    assert caplog.text == ""
    with socket.socket() as taker:
        taker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taker.bind(("127.0.0.1", port_of(first)))
        taker.listen()
        third = began(tmp_path)
    assert port_of(third) != port_of(first)
    assert third.host.me == first.host.me
    assert "the ports of the last run are taken, using free ones" in caplog.text
    assert port_of(began(tmp_path)) == port_of(third)


def test_a_port_that_was_asked_for_is_not_changed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as taker:
        taker.bind(("127.0.0.1", 0))
        taker.listen()
        wanted = Options(listen=(f"/ip4/127.0.0.1/tcp/{taker.getsockname()[1]}",))
        with pytest.raises(DaemonError, match="end it, or listen at another port"):
            began(tmp_path, wanted)
    assert "using free ones" not in caplog.text


def test_addresses_that_are_no_peers_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = began(tmp_path, named=("/ip4/1.2.3.4/tcp/1/p2p/nobody",))
    assert "/ip4/1.2.3.4/tcp/1/p2p/nobody" in caplog.text
    assert place.book.peers == []


class Asked:
    """Stands in for asking others: says no some times, then has it."""

    def __init__(self, refusals: int) -> None:
        self.left = refusals

    async def __call__(self, *_: object, **__: object) -> Manifest:
        if self.left:
            self.left -= 1
            raise Unreachable("nobody is there")
        return MANIFEST


class Nowhere:
    """A place of which only the names are looked at."""

    transport = None
    book = type("Book", (), {"peers": ()})()


def manifest(folder: Folder) -> Manifest:
    return asyncio.run(manifest_of(folder, Nowhere(), MANIFEST.swarm_id))  # type: ignore[arg-type]


def test_the_manifest_is_asked_for_until_it_is_there_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pauses = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    with Folder(tmp_path) as folder:
        monkeypatch.setattr(module, "joined", Asked(6))
        monkeypatch.setattr(module.asyncio, "sleep", sleep)
        assert manifest(folder) == MANIFEST
        assert pauses == [5, 10, 20, 40, 60, 60]
        assert "nobody is there; trying again in 40 s" in caplog.text
        monkeypatch.setattr(module, "joined", None)
        assert manifest(folder) == MANIFEST


def test_a_swarm_that_speaks_otherwise_is_not_joined(tmp_path: Path) -> None:
    strange = Manifest.founded(Identity.from_seed(b"f" * 32), "bees")
    with Folder(tmp_path) as folder:
        folder.keep_manifest(strange)
        asked = manifest_of(folder, Nowhere(), b"x" * 32)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="give another --data-dir for another swarm"):
            asyncio.run(asked)


def test_who_speaks_another_protocol_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Folder(tmp_path) as folder:
        folder.keep_manifest(MANIFEST)
        versions = module.Versions(protocol=99)
        monkeypatch.setattr(module, "Versions", lambda: versions)
        with pytest.raises(UsageError, match=r"this giaann-p2p 99; install the release"):
            manifest(folder)
