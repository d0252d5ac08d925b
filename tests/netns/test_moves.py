"""Peers that are not where they were, and connections whose other end is gone."""

import time

import pytest

from tests.netns.conftest import NewSwarm
from tests.netns.swarm import Swarm

pytestmark = [pytest.mark.netns, pytest.mark.timeout(600)]
FOUND_WITHIN = 150.0
ELSEWHERE = "10.77.0.99"


def test_a_peer_whose_address_changes_is_found_again(new_swarm: NewSwarm) -> None:
    with new_swarm() as swarm:
        visitor, writer = swarm.writer()
        visitor.do(writer.learn())
        visitor.do(writer.settled(peers=3))
        began = time.monotonic()
        swarm.storages[0].host.change_address(ELSEWHERE)
        visitor.do(writer.learn(3))
        print(f"\nthree epochs learned after {time.monotonic() - began:.1f} s")
        found(swarm)
        print(f"whoever comes finds it after {time.monotonic() - began:.1f} s")
        visitor.do(writer.learn())
        visitor.do(writer.settled(peers=3))
        print(f"all agree after {time.monotonic() - began:.1f} s")


def found(swarm: Swarm) -> None:
    """Wait until somebody who was never there before reaches all peers, by what they announce."""
    until, newcomer = time.monotonic() + FOUND_WITHIN, swarm.network.host()
    while True:
        try:
            told = swarm.told("status", host=newcomer)
        except OSError as error:
            told = {"verdict": str(error)}
        if told["verdict"] == "healthy" and not told["silent"]:
            break
        assert time.monotonic() < until, told
    addresses = [one for peer in told["peers"] for one in peer["addresses"]]
    assert any(f"/{ELSEWHERE}/" in one for one in addresses), addresses


@pytest.mark.parametrize("told", [True, False], ids=["told at its return", "never told"])
def test_calls_go_on_after_a_peer_was_lost_in_silence(new_swarm: NewSwarm, told: bool) -> None:
    """Whoever is never told, by a reset or an end, goes by deadlines alone."""
    with new_swarm() as swarm:
        visitor, writer = swarm.writer()
        visitor.do(writer.learn())
        visitor.do(writer.settled(peers=3))
        lost = swarm.storages[0]
        swarm.network.cut([lost.host], swarm.network.hosts)
        lost.kill()
        lost.wait_gone()
        visitor.do(writer.learn(2))
        visitor.do(writer.read(writer.wiki.telling()))
        lost.start()
        swarm.network.heal()
        if not told:
            swarm.network.half_open(lost.host)
        began = time.monotonic()
        lost.wait_ready()
        print(f"\nready {time.monotonic() - began:.1f} s after its start")
        visitor.do(writer.learn(2))
        visitor.do(writer.settled(peers=3))
        print(f"all agree after {time.monotonic() - began:.1f} s; {writer.figures}")
