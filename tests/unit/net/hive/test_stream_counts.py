"""Peers that open streams without end."""

from contextlib import suppress
from functools import partial

import pytest

from giaann_p2p.net.hive import life
from giaann_p2p.net.hive.daemon_limits import WatchLimits
from giaann_p2p.net.hive.stream_counts import StreamCounts
from giaann_p2p.swarm.wire.identity import Peer
from tests.benchmarks.p2pd_flood.connection import Connection
from tests.unit.net.hive.helpers import Place, echo, hosts, port_of

HUGE = WatchLimits(memory=1 << 40, descriptors=1 << 40, busy=1e9)
"""Never exceeded."""
ONE, OTHER = Peer(bytes(32)), Peer(bytes([1]) * 32)


def test_so_many_in_so_many_seconds_and_no_more() -> None:
    openings = StreamCounts(most=2, within=10.0)
    assert [openings.too_many(ONE, now) for now in (0.0, 1.0, 2.0, 9.9)] == [False] * 2 + [True] * 2
    assert not openings.too_many(OTHER, 9.9)
    assert [openings.too_many(ONE, now) for now in (10.0, 11.0, 12.0)] == [False, False, True]


def test_many_peers_are_not_all_remembered() -> None:
    openings = StreamCounts(most=1, within=10.0, peers=3)
    for number in range(100):
        assert not openings.too_many(Peer(bytes([number]) * 32), 0.0)
    assert repr(openings) == "<StreamCounts of 3 peers>"


@pytest.mark.slow
def test_who_opens_streams_without_end_is_disconnected_and_others_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A busy machine may take longer to open that many.
    monkeypatch.setattr(life, "StreamCounts", partial(StreamCounts, within=3600.0))

    async def story(place: Place) -> None:
        host, member = await place.host(watch=HUGE), await place.host()
        ours, theirs = place.transport(host), place.transport(member)
        ours.serve(echo)
        assert await theirs.call(host.me, b"x", timeout=60) == b"x"
        stranger = await Connection.dialled("127.0.0.1", port_of(host))
        with suppress(OSError):
            while stranger.is_open:
                await stranger.open(life.STREAMS)
        assert await theirs.call(host.me, b"y", timeout=60) == b"y"
        assert theirs.connections == 1
        assert host.disconnected == 0  # by the watchdog
        await stranger.close()
        await ours.close()
        await theirs.close()

    hosts(story)
