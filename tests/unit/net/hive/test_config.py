"""What may be chosen of a host, and where its sockets are."""

import fcntl
import os
import socket
import tempfile
from pathlib import Path
from typing import Any

import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.net.hive.config import HostConfig
from giaann_p2p.net.hive.daemon import _options
from giaann_p2p.net.hive.runtime import MOST_PATH, Runtime


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"listen": ()}, "must name at least one address"),
        ({"listen": ("127.0.0.1:4100",)}, "must consist of multiaddrs"),
        ({"listen": ("/ip4/1.2.3.4/tcp/1,/ip4/1.2.3.4/tcp/2",)}, "must consist of multiaddrs"),
        ({"announce": ("/ip4/1.2.3.4/tcp/0",)}, "announce must name a port"),
        ({"announce": ("/ip4/1.2.3.4/tcp/7",)}, "listen must name ports"),
        ({"connections": (9, 9)}, "two ascending numbers"),
        ({"gogc": 0}, "gogc must be more than 0"),
        ({"check_every": 0.0}, "check_every must be more than 0"),
        ({"again_after": 20.0}, "again_most must be at least"),
    ],
)
def test_what_cannot_be(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        HostConfig(**changes)


@pytest.mark.parametrize(
    ("listen", "uses_nat"),
    [
        (["/ip4/127.0.0.1/tcp/0"], False),
        (["/ip4/192.168.1.7/tcp/0", "/ip6/::1/udp/0/quic-v1"], False),
        (["/ip4/127.0.0.1/tcp/0", "/ip4/0.0.0.0/tcp/0"], True),
        (["/ip4/8.8.8.8/tcp/0"], True),
        (["/dns4/example.org/tcp/4100"], True),
    ],
)
def test_a_router_is_asked_only_where_there_may_be_one(listen: list[str], uses_nat: bool) -> None:
    config = HostConfig(listen=tuple(listen))
    assert config.uses_nat == uses_nat
    options = _options(Path("key"), Path("/s"), config)
    assert f"-natPortMap={int(uses_nat)}" in options
    assert f"-autonat={int(uses_nat)}" in options
    assert HostConfig(listen=tuple(listen), nat=not uses_nat).uses_nat != uses_nat


def test_ports_that_were_found_free_stay() -> None:
    listen = ("/ip4/0.0.0.0/tcp/0", "/ip4/0.0.0.0/udp/0/quic-v1", "/ip4/0.0.0.0/tcp/70")
    settled = HostConfig(listen=listen).settled({"tcp": 1234, "udp": 999})
    assert settled.listen == (
        "/ip4/0.0.0.0/tcp/1234",
        "/ip4/0.0.0.0/udp/999/quic-v1",
        "/ip4/0.0.0.0/tcp/70",
    )


def test_what_was_chosen_is_passed_on() -> None:
    config = HostConfig(
        listen=("/ip4/0.0.0.0/tcp/1",),
        announce=("/ip4/1.2.3.4/tcp/2", "/dns4/a.b/tcp/3"),
        auto_relay=True,
        serve_relay=False,
        trusted_relays=("/ip4/1.2.3.4/tcp/5/p2p/x",),
        connections=(7, 8),
    )
    options = set(_options(Path("key"), Path("/s"), config))
    assert options >= {
        "-announceAddrs=/ip4/1.2.3.4/tcp/2,/dns4/a.b/tcp/3",
        "-autoRelay=1",
        "-dhtClient=1",
        "-relayService=0",
        "-trustedRelays=/ip4/1.2.3.4/tcp/5/p2p/x",
        "-connLo=7",
        "-connHi=8",
        "-connGrace=10s",
        "-id=key",
    }


def test_strangers_find_no_dht_of_libp2p_and_relays_of_bounded_memory() -> None:
    options = _options(Path("key"), Path("/s"), HostConfig())
    assert [option for option in options if option.startswith("-dht")] == ["-dhtClient=0"]
    sizes = dict(option.split("=") for option in options if option.startswith("-relay"))
    streams = int(sizes["-relayMaxReservations"]) * int(sizes["-relayMaxCircuits"])
    assert 2 * streams * int(sizes["-relayBufferSize"]) <= 32 << 20


@pytest.mark.parametrize("changes", [{"trusted_relays": ()}, {"relay": False}])
def test_who_knows_no_relay_looks_for_none(changes: dict[str, Any]) -> None:
    relays = {"auto_relay": True, "trusted_relays": ("/ip4/1.2.3.4/tcp/5/p2p/x",)}
    options = _options(Path("key"), Path("/s"), HostConfig(**{**relays, **changes}))
    assert "-autoRelay=0" in options
    assert not [option for option in options if option.startswith("-trustedRelays")]


def test_relays_are_turned_off_by_a_file_because_the_option_has_no_effect() -> None:
    options = _options(Path("key"), Path("/run/s"), HostConfig(relay=False))
    assert "-f=/run/p2pd.json" in options
    assert not [one for one in _options(Path("key"), Path("/s"), HostConfig()) if "-f=" in one]


@pytest.mark.parametrize(
    ("settings", "uses_relays"),
    [
        ({}, True),
        ({"listen": ("/ip4/127.0.0.1/tcp/0", "/ip6/::1/tcp/0")}, False),
        ({"listen": ("/ip4/127.0.0.1/tcp/0", "/ip4/10.0.0.1/tcp/0")}, True),
        ({"listen": ("/dns4/localhost/tcp/1",)}, True),
        ({"listen": ("/ip4/127.0.0.1/tcp/1",), "announce": ("/ip4/1.2.3.4/tcp/2",)}, True),
        ({"listen": ("/ip4/127.0.0.1/tcp/0",), "auto_relay": True}, True),
        ({"listen": ("/ip4/127.0.0.1/tcp/0",), "relay": True}, True),
        ({"relay": False}, False),
    ],
)
def test_a_peer_that_only_this_machine_reaches_has_no_relays(
    settings: dict[str, Any], uses_relays: bool
) -> None:
    config = HostConfig(**settings)
    assert config.uses_relays == uses_relays
    assert f"-relay={int(uses_relays)}" in _options(Path("key"), Path("/s"), config)


def test_a_run_sweeps_after_those_that_were_killed(tmp_path: Path) -> None:
    (tmp_path / "giaann-p2pd-killed").mkdir()
    (tmp_path / "giaann-p2pd-killed" / "lock").touch()
    (tmp_path / "giaann-p2pd-killed" / "p2pd.sock").touch()
    (tmp_path / "giaann-p2pd-running").mkdir()
    (tmp_path / "else").mkdir()
    with (tmp_path / "giaann-p2pd-running" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        first = Runtime(tmp_path)
        second = Runtime(tmp_path)
        names = {path.name for path in tmp_path.iterdir()}
        assert names == {"giaann-p2pd-running", "else", first.path.name, second.path.name}
        assert first.path.stat().st_mode & 0o777 == 0o700
        first.close()
        second.close()
    assert {path.name for path in tmp_path.iterdir()} == {"giaann-p2pd-running", "else"}


def test_the_longest_path_of_a_folder_can_hold_sockets() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        longest = Path(short, "x" * (MOST_PATH - len(os.fsencode(short)) - 1))
        longest.mkdir()
        runtime = Runtime(longest)
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(str(runtime.path / "streams.sock"))
        runtime.close()
        with pytest.raises(UsageError, match="too long a path"):
            Runtime(longest.with_name(longest.name + "x"))


def test_a_folder_that_cannot_hold_sockets(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="too long a path"):
        Runtime(tmp_path / ("x" * 100))
    if len(os.fsencode(tmp_path)) < 70:
        with pytest.raises(UsageError, match="no sockets can be created"):
            Runtime(tmp_path / "none")
