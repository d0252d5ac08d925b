"""Knocking at addresses, and judging the own ones."""

import asyncio
import socket
from collections.abc import Iterator

import pytest

from giaann_p2p.client.doctor.finding import Finding
from giaann_p2p.client.doctor.ways import knock, knocked, listening, outside

PEER = "/p2p/12D3KooWCocgU7xjjKSfjcJvxnTj8ChMyRgLBQ7AAYK2GBf5X1Tn"


@pytest.fixture
def port() -> Iterator[int]:
    """A port where somebody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def knock_at(address: str, within: float = 3.0) -> Finding:
    return asyncio.run(knock(f"{address}{PEER}", within))


@pytest.mark.parametrize("host", ["ip4/127.0.0.1", "dns4/localhost", "dns/localhost"])
def test_somebody_is_there(port: int, host: str) -> None:
    found = knock_at(f"/{host}/tcp/{port}")
    assert (found.verdict, found.check) == ("ok", f"address /{host}/tcp/{port}")
    assert found.said.startswith("accepts connections, after ")


@pytest.mark.parametrize(
    ("address", "verdict", "said", "remedy"),
    [
        ("/ip4/127.0.0.1/tcp/1", "problem", "refuses connections", "no process listens there"),
        (
            "/dns4/nobody.invalid/tcp/1",
            "problem",
            "nobody.invalid cannot be resolved",
            "getent hosts",
        ),
        ("/ip4/300.0.0.1/tcp/1", "problem", "300.0.0.1 cannot be resolved here", "newer link"),
        ("/ip4/127.0.0.1/tcp/99999", "problem", "", ""),
        ("/ip4/127.0.0.1/udp/1/quic-v1", "note", "UDP cannot be tested", ""),
        (f"/ip4/127.0.0.1/tcp/1{PEER}/p2p-circuit", "note", "uses a relay", ""),
        ("/unix/tmp", "note", "of a kind that cannot be tested", ""),
    ],
)
def test_nobody_is_there(address: str, verdict: str, said: str, remedy: str) -> None:
    found = knock_at(address)
    assert found.verdict == verdict
    assert said in found.said
    assert remedy in found.remedy


def test_silence_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: object) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr(asyncio, "open_connection", never)
    found = knock_at("/ip4/192.0.2.1/tcp/4100", 0.05)
    assert (found.verdict, found.said) == ("problem", "no answer in 0.05 s")
    assert "firewall" in found.remedy


def test_where_one_address_answers_the_others_are_no_problem(port: int) -> None:
    good, bad = f"/ip4/127.0.0.1/tcp/{port}{PEER}", f"/ip4/127.0.0.1/tcp/1{PEER}"
    assert [one.verdict for one in asyncio.run(knocked([bad, good]))] == ["note", "ok"]
    assert [one.verdict for one in asyncio.run(knocked([bad]))] == ["problem"]


def test_a_port_that_is_taken(port: int) -> None:
    assert listening(["/ip4/127.0.0.1/tcp/0"]).verdict == "ok"
    found = listening(["/ip4/127.0.0.1/tcp/0", f"/ip4/127.0.0.1/tcp/{port}"])
    assert (found.verdict, f"tcp/{port}" in found.said) == ("problem", True)
    assert "--listen" in found.remedy


LOOPBACK, PRIVATE = "/ip4/127.0.0.1/tcp/1", "/ip4/192.168.1.7/tcp/1"
PUBLIC, NAMED = "/ip4/8.8.8.8/tcp/1", "/dns4/seed.example.org/tcp/1"


@pytest.mark.parametrize(
    ("told", "link", "verdict"),
    [
        ([LOOPBACK], [LOOPBACK], "ok"),
        ([LOOPBACK, PRIVATE], [LOOPBACK], "ok"),
        ([LOOPBACK], [PRIVATE], "problem"),
        ([LOOPBACK], [PUBLIC], "problem"),
        ([LOOPBACK, PRIVATE], [PRIVATE], "ok"),
        ([LOOPBACK, PRIVATE], [PUBLIC], "note"),
        ([PRIVATE], [NAMED], "note"),
        ([PRIVATE, PUBLIC], [NAMED], "ok"),
        ([NAMED], [PUBLIC], "ok"),
        (["/ip4/nonsense/tcp/1"], [PRIVATE], "problem"),
        ([], [LOOPBACK], "problem"),
    ],
)
def test_who_can_dial_what_others_are_told(told: list[str], link: list[str], verdict: str) -> None:
    found = outside(told, link, announced=False, relay=False)
    assert found.verdict == verdict
    assert bool(found.remedy) == (verdict != "ok")


def test_forwarding_announcing_and_relays_are_named() -> None:
    found = outside([PRIVATE], [PUBLIC], announced=False, relay=False)
    assert all(word in found.remedy for word in ("forward", "--announce", "--relay"))
    assert outside([PRIVATE], [PUBLIC], announced=False, relay=True).remedy == ""
    assert "tested only from outside" in outside([PUBLIC], [PUBLIC], True, False).said
