"""Sides of a swarm that do not reach each other: each does what it may, and then they agree."""

import time

import pytest

from giaann_p2p.client.session import Session
from tests.e2e.material import Wiki
from tests.e2e.writer import Writer
from tests.netns.conftest import NewSwarm
from tests.netns.swarm import Swarm, Visitor
from tests.pushing import Pusher

pytestmark = [pytest.mark.netns, pytest.mark.timeout(600)]
STORAGES = 3
ELSEWHERE = 1000
"""The epoch, and so the job, of what is pushed on the other side."""
GONE_WITHIN = 120.0


def test_only_the_side_with_a_quorum_commits(new_swarm: NewSwarm) -> None:
    with new_swarm(storages=STORAGES) as swarm:
        (near, writer), far = swarm.writer(), swarm.visitor()
        near.do(writer.learn())
        split(swarm, near, far)
        pushing = far.begin(pushed(far.visiting, writer.wiki))
        near.do(writer.learn(5))
        assert not pushing.done()
        swarm.network.heal()
        pushing.result(120.0)
        committed(writer)
        agreed(swarm, near, writer)


def test_with_a_quorum_of_one_both_sides_commit_and_agree_later(new_swarm: NewSwarm) -> None:
    with new_swarm(storages=STORAGES, founding=("--quorum", "1")) as swarm:
        (near, writer), far = swarm.writer(), swarm.visitor()
        near.do(writer.learn())
        split(swarm, near, far)
        pushing = far.begin(pushed(far.visiting, writer.wiki))
        near.do(writer.learn(5))
        pushing.result(120.0)
        committed(writer)
        gone(near, left=2)
        gone(far, left=1)
        near.do(writer.learn(2))
        swarm.network.heal()
        agreed(swarm, near, writer)


@pytest.mark.parametrize("mute", [True, False], ids=["mute", "deaf"])
def test_of_a_peer_that_is_heard_or_hears_no_more_nobody_depends(
    new_swarm: NewSwarm, mute: bool
) -> None:
    with new_swarm(storages=STORAGES) as swarm:
        near, writer = swarm.writer()
        near.do(writer.learn())
        lone = [swarm.storages[0].host]
        others = [host for host in swarm.network.hosts if host not in lone]
        swarm.network.cut_one_way(lone if mute else others, others if mute else lone)
        near.do(writer.learn(5))
        near.do(writer.read(writer.wiki.telling()))
        swarm.network.heal()
        agreed(swarm, near, writer)


def test_a_host_that_was_cut_off_comes_back(new_swarm: NewSwarm) -> None:
    with new_swarm(storages=STORAGES) as swarm:
        near, writer = swarm.writer()
        near.do(writer.learn())
        lone = swarm.storages[0].host
        swarm.network.cut([lone], swarm.network.hosts)
        near.do(writer.learn(2))
        gone(near, left=2)
        near.do(writer.learn(2))
        swarm.network.heal()
        agreed(swarm, near, writer)


def split(swarm: Swarm, near: Visitor, far: Visitor) -> None:
    """Leave one storage peer, and one visitor, on the far side."""
    there = [swarm.storages[-1].host, far.host]
    here = [host for host in swarm.network.hosts if host not in there]
    assert near.host in here
    swarm.network.cut(here, there)


async def pushed(visiting: Session, wiki: Wiki) -> None:
    pusher = Pusher.of(visiting)
    for number in range(len(wiki.deltas)):
        await pusher.push(wiki.job(ELSEWHERE), number, wiki.cut(number), wiki.tree(number))


def committed(writer: Writer) -> None:
    """Take in what was pushed on the other side."""
    for number in range(len(writer.wiki.deltas)):
        writer.wiki.committed(writer.wiki.job(ELSEWHERE), number, number)


def gone(visitor: Visitor, left: int) -> None:
    """Wait until only so many storage peers are taken to be there."""
    until = time.monotonic() + GONE_WITHIN
    while len(visitor.visiting.storage_peers()) != left:
        assert time.monotonic() < until, visitor.visiting.overview()
        time.sleep(0.2)


def agreed(swarm: Swarm, visitor: Visitor, writer: Writer) -> None:
    """See that all replicas come to hold the same, and what one machine holds."""
    began = time.monotonic()
    visitor.do(writer.settled(STORAGES), 150.0)
    print(f"\nall agree {time.monotonic() - began:.1f} s later; {writer.figures}")
    told = swarm.told("fsck", host=visitor.host)
    assert told["agrees"]
    assert told["digest"] == writer.wiki.digest
    assert told["silent"] == []
