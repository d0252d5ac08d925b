"""A p2pd that strangers make take too much, and who is disconnected then."""

import os
from pathlib import Path

import pytest

from giaann_p2p.net.hive import watchdog as module
from giaann_p2p.net.hive.daemon_limits import Figures, WatchLimits
from giaann_p2p.net.hive.process import figures_of
from tests.benchmarks.p2pd_flood.connection import Connection
from tests.unit.net.hive.helpers import Place, echo, hosts, port_of, until

MUCH = WatchLimits(descriptors=1, far=1 << 40)
"""Always exceeded."""


def test_strangers_are_disconnected_and_peers_that_are_served_or_were_dialled_are_not() -> None:
    async def story(place: Place) -> None:
        host = await place.host(watch=MUCH)
        member, dialled = await place.host(), await place.host()
        ours, theirs = place.transport(host), place.transport(member)
        host.know(ours.serves)
        ours.serve(echo)
        assert await theirs.call(host.me, b"x", timeout=60) == b"x"
        assert await host.connect(dialled.addresses) == [dialled.me]
        strangers = [await Connection.dialled("127.0.0.1", port_of(host)) for _ in range(3)]
        await until(lambda: not any(one.is_open for one in strangers))
        assert set(await host.control.peers()) == {member.me, dialled.me}
        assert (ours.connections, theirs.connections) == (1, 1)
        assert host.disconnected >= 3
        for one in strangers:
            await one.close()
        await ours.close()
        await theirs.close()

    hosts(story)


def test_a_p2pd_that_takes_far_too_much_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(place: Place) -> None:
        host = await place.host()
        first = place.note(host)

        def figures(pid: int) -> Figures:
            memory = 1 << 40 if pid == first else 1
            return Figures(memory=memory, descriptors=1, seconds=0.0, moved=0)

        monkeypatch.setattr(module, "figures_of", figures)
        await until(lambda: host.deaths == 1 and host.pid is not None)
        place.note(host)
        (why,) = place.deaths
        assert "far above its limit" in why
        assert await host.control.me() == host.me

    hosts(story)


def test_what_a_process_takes_is_read() -> None:
    found = figures_of(os.getpid())
    assert found is not None
    assert found.memory > 1 << 20
    assert found.descriptors >= 3
    assert found.seconds > 0
    assert found.moved > 0
    with Path("/proc/self/statm").open() as file:
        more = figures_of(os.getpid())
        assert more is not None
        assert more.descriptors == found.descriptors + 1
        assert more.moved >= found.moved
        assert file.read()
    assert figures_of(1 << 30) is None
