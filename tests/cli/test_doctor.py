"""`giaann doctor`, as somebody runs it who cannot join, or thinks so."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from giaann_p2p.swarm.wire.link import Link
from tests.cli.conftest import Done, Run
from tests.cli.living import Running

NOBODY = "12D3KooWCocgU7xjjKSfjcJvxnTj8ChMyRgLBQ7AAYK2GBf5X1Tn"
HERE = ("--listen", "/ip4/127.0.0.1/tcp/0")


def findings(done: Done) -> dict[str, dict[str, str]]:
    assert done.stderr == ""
    told = json.loads(done.stdout)
    assert told["well"] == (done.returncode == 0)
    assert told["well"] == all(one["verdict"] != "problem" for one in told["findings"])
    for one in told["findings"]:
        assert one["verdict"] == "ok" or one["remedy"], one
    return {one["check"]: one for one in told["findings"]}


def test_nothing_is_wrong(giaann: Run, swarm: Running, tmp_path: Path) -> None:
    done = giaann(
        "doctor", "--join", swarm.link, *HERE, "--data-dir", tmp_path / "new", "--capacity", "64MiB"
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    lines = done.stdout.splitlines()
    assert lines[-1] == "nothing keeps this peer from joining"
    assert not any("PROBLEM" in line for line in lines)
    for line in (
        f"ok      folder: {tmp_path / 'new'} can be created",
        "ok      link: names a swarm and 1 address",
        "ok      p2pd: can be started",
        "ok      swarm: 'bees': founded with 4 shards, 2 replicas of each",
        "ok      directory: can be read: it lists 2 storage peers",
        "ok      clock: agrees with those of other peers",
    ):
        assert line in lines
    assert list(tmp_path.iterdir()) == []


def test_the_same_for_programs(giaann: Run, swarm: Running) -> None:
    found = findings(giaann("doctor", "--json", "--join", swarm.link, *HERE))
    assert {one["verdict"] for one in found.values()} <= {"ok", "note"}
    assert {"memory", "open files", "listen", "link", "p2pd", "versions", "clock"} <= set(found)


@pytest.fixture
def port() -> Iterator[int]:
    with socket.socket() as taker:
        taker.bind(("127.0.0.1", 0))
        taker.listen()
        yield taker.getsockname()[1]


def test_several_things_at_once(giaann: Run, swarm: Running, tmp_path: Path, port: int) -> None:
    (tmp_path / "file").touch()
    done = giaann(
        *("doctor", "--join", swarm.link, "--listen", f"/ip4/127.0.0.1/tcp/{port}"),
        *("--data-dir", tmp_path / "file", "--capacity", "100TiB"),
    )
    assert (done.returncode, done.stderr) == (1, "")
    lines = done.stdout.splitlines()
    assert lines[-1] == "4 problems: see above"
    wrong = [(line, lines[at + 1]) for at, line in enumerate(lines) if line.startswith("PROBLEM")]
    assert [line.split()[1] for line, _ in wrong] == ["memory:", "folder:", "disk:", "listen:"]
    assert all(remedy.startswith("        -> ") for _, remedy in wrong)
    assert "ok      swarm: 'bees': founded with 4 shards, 2 replicas of each" in lines


def test_a_link_that_is_none(giaann: Run) -> None:
    found = findings(giaann("doctor", "--json", "--join", "giaann://half", *HERE))
    assert found["link"]["verdict"] == "problem"
    assert found["p2pd"]["verdict"] == "ok"


def test_a_peer_that_is_not_there(giaann: Run, swarm: Running) -> None:
    link = Link(Link.read(swarm.link).swarm_id, (f"/ip4/127.0.0.1/tcp/1/p2p/{NOBODY}",))
    found = findings(giaann("doctor", "--json", "--join", str(link), *HERE))
    assert found["address /ip4/127.0.0.1/tcp/1"]["said"] == "refuses connections"
    assert "cannot be reached" in found["peer frq6hkbz"]["said"]
    assert "directory" not in found


def test_an_address_where_another_peer_is_now(giaann: Run, swarm: Running) -> None:
    link = Link.read(swarm.link)
    address = link.addresses[0].partition("/p2p/")[0]
    moved = Link(link.swarm_id, (f"{address}/p2p/{NOBODY}",))
    found = findings(giaann("doctor", "--json", "--join", str(moved), *HERE))
    assert found[f"address {address}"]["verdict"] == "ok"
    assert found["peer frq6hkbz"]["said"] == "another peer answers at its address"
    both = Link(link.swarm_id, (*moved.addresses, *link.addresses))
    found = findings(giaann("doctor", "--json", "--join", str(both), *HERE))
    assert found["peer frq6hkbz"]["verdict"] == "note"
    assert found["directory"]["verdict"] == "ok"


def test_another_swarms_link(giaann: Run, swarm: Running) -> None:
    link = Link(b"x" * 32, Link.read(swarm.link).addresses)
    done = giaann("doctor", "--join", str(link), *HERE)
    assert done.returncode == 1
    assert "this is another swarm's manifest" in done.stdout


def test_what_is_no_size(giaann: Run) -> None:
    done = giaann("doctor", "--join", "giaann://x", "--capacity", "much")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == ("giaann: 'much' is not a size; write it as 8GiB, 500MB or 1000000\n")
