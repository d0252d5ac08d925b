"""Join links: what is printed is read, and a wrong part is named."""

import shlex

import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.swarm.wire.link import Link, fault_of

SWARM = bytes(range(32))
SWARM_TEXT = "aaaqeayeaudaocajbifqydiob4ibceqtcqkrmfyydenbwha5dypq"
IP4 = "/ip4/203.0.113.7/tcp/4100/p2p/12D3KooWBmAwcd4PJNJvfV89HwE48nwkRmAgo8Vy3uQEyNNHBox2"
DNS = "/dns4/seed-1.example.org/tcp/4100/p2p/QmNnooDu7bfjPFoTZYxMNLWUQJyrVwtbZg5gBMjTezGAJN"
IP6 = "/ip6/fe80::1%25eth0/tcp/1/p2p/Qm1/p2p-circuit/p2p/Qm2"


def test_links_come_back() -> None:
    link = Link(SWARM, (IP4, DNS, IP6))
    assert str(link) == f"giaann://{SWARM_TEXT}{IP4},{DNS},{IP6}"
    assert Link.read(str(link)) == link
    assert Link.read(f"\n  {link} ") == link
    assert Link.read(f"GIAANN://{SWARM_TEXT.upper()}{IP4}") == Link(SWARM, (IP4,))


def test_a_link_needs_no_quotes_in_a_shell() -> None:
    text = str(Link(SWARM, (IP4, DNS, IP6)))
    assert shlex.quote(text) == text


def test_the_longest_link_can_be_read() -> None:
    longest = "/dns4/" + "x" * 200
    longest += "/p2p/" + "Q" * (256 - len(longest) - 5)
    link = Link(SWARM, (longest,) * 32)
    assert Link.read(str(link)) == link


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "begins with giaann://, not with ''"),
        (f"https://{SWARM_TEXT}{IP4}", "begins with giaann://, not with 'https://a'"),
        (f"giaann://{SWARM_TEXT}", "contains no address"),
        (f"giaann://{SWARM_TEXT[:-1]}{IP4}", "the join link's swarm has 52 .* this has 51"),
        (f"giaann://{SWARM_TEXT[:-1]}0{IP4}", "the join link's swarm has only .* not '0'"),
        (f"giaann://{SWARM_TEXT}{IP4},", "address '' does not consist of parts like"),
        (f"giaann://{SWARM_TEXT}{IP4},x", "address 'x' does not consist of parts like"),
        (
            f"giaann://{SWARM_TEXT}/ip4/1.2.3.4/tcp/1",
            "names no peer: it lacks a part /p2p/<peer>",
        ),
        (f"giaann://{SWARM_TEXT}/ip4/1.2.3.4/p2p/", "does not consist of parts"),
        (f"giaann://{SWARM_TEXT}{IP4}" + f",{IP4}" * 32, "names 1 to 32 addresses, not 33"),
        (f"giaann://{SWARM_TEXT}/dns4/{'x' * 250}{IP4}", "more than 256"),
        ("giaann://" + "x" * 100_000, "at most .* characters, not 100,009"),
    ],
)
def test_the_wrong_part_is_named(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        Link.read(text)


def test_a_link_to_nowhere_is_not_made() -> None:
    with pytest.raises(UsageError, match="names 1 to 32 addresses, not 0"):
        Link(SWARM, ())


@pytest.mark.parametrize("letter", " \t\n,;&|$`'\"\\<>(){}[]*?!#~^@+é\0\x1b")
def test_addresses_mean_nothing_to_shells_and_terminals(letter: str) -> None:
    assert not fault_of(IP4)
    assert fault_of(f"/dns4/x{letter}y/tcp/1/p2p/Qm1")
    assert fault_of(IP4 + letter)
