"""A board on which only members have a place."""

import time

import pytest

from giaann_p2p.net.errors import Unreachable
from giaann_p2p.net.hive.board import HiveBoard
from giaann_p2p.net.hive.host import Host
from giaann_p2p.node.clock import Clock
from giaann_p2p.swarm.wire.admission import Admission
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.revoked import Revoked
from giaann_p2p.swarm.wire.token import Rights, founded
from tests.unit.net.hive.helpers import Place, hosts, until
from tests.unit.net.hive.helpers_board import LAYOUT, RULES, record

pytestmark = pytest.mark.usefixtures("patient")
FOUNDER = Identity.from_seed(b"f" * 32)
CLUB = Manifest.founded(FOUNDER, "club", layout=LAYOUT, admission="token")
CLOCK = Clock()


def token_of(host: Host) -> bytes:
    until_then = int(time.time()) + 600
    return founded(FOUNDER, CLUB.swarm_id, host.me, Rights.STORAGE, until_then).to_bytes()


def record_of(host: Host, token: bytes, later: int = 0) -> bytes:
    return record(host.identity, CLOCK(), later, swarm_id=CLUB.swarm_id, token=token)


async def board(
    place: Place, admission: Admission | None, *, member: bool = True
) -> tuple[HiveBoard, Host, bytes]:
    host = await place.host()
    token = token_of(host) if member else b""
    seeds = place.hosts[0].addresses
    made = await HiveBoard.start(
        host, CLUB.swarm_id, lambda: RULES, lambda: seeds, CLOCK, admission, token
    )
    return made, host, token


async def seen(one: HiveBoard) -> list[bytes]:
    return sorted({record for brought in await one.look("storage") for record in brought})


def test_members_find_each_other_and_a_stranger_finds_nobody_and_is_not_found() -> None:
    async def story(place: Place) -> None:
        members = [await board(place, Admission(CLUB)) for _ in range(3)]
        stranger, its_host, _ = await board(place, None, member=False)
        await until(lambda: all(one.nodes == 2 for one, _, _ in members))
        left = []
        for one, host, token in members:
            left.append(record_of(host, token))
            await one.post("storage", left[-1], 300)
        for one, _, _ in members:
            assert await seen(one) == sorted(left)
            assert one.nodes == 2
        assert stranger.nodes == 0
        with pytest.raises(Unreachable):
            await stranger.look("storage")
        with pytest.raises(Unreachable):
            await stranger.post("storage", record_of(its_host, b""), 300)
        for one, _, _ in members:
            assert await seen(one) == sorted(left)
        for one in (*[one for one, _, _ in members], stranger):
            await one.close()

    hosts(story)


def test_who_is_revoked_is_a_stranger_on_the_board() -> None:
    async def story(place: Place) -> None:
        admissions = [Admission(CLUB) for _ in range(2)]
        members = [await board(place, admission) for admission in admissions]
        (one, _, _), (other, its_host, token) = members
        await until(lambda: one.nodes == other.nodes == 1)
        await other.post("storage", record_of(its_host, token), 300)
        gone = Revoked(CLUB.swarm_id).next(FOUNDER, {its_host.me})
        assert admissions[0].learn(gone.to_bytes())
        with pytest.raises(Unreachable):
            await other.post("storage", record_of(its_host, token, later=10), 300)
        with pytest.raises(Unreachable):
            await other.look("storage")
        await one.close()
        await other.close()

    hosts(story)


def test_a_member_that_is_no_storage_peer_leaves_no_record_as_one() -> None:
    async def story(place: Place) -> None:
        first, _, _ = await board(place, Admission(CLUB))
        host = await place.host()
        computes = founded(
            FOUNDER, CLUB.swarm_id, host.me, Rights.COMPUTE, int(time.time()) + 600
        ).to_bytes()
        seeds = place.hosts[0].addresses
        other = await HiveBoard.start(
            host, CLUB.swarm_id, lambda: RULES, lambda: seeds, CLOCK, None, computes
        )
        await until(lambda: first.nodes == 1)
        with pytest.raises(Unreachable):
            await other.post("storage", record_of(host, computes), 300)
        assert first.refused > 0
        await first.close()
        await other.close()

    hosts(story)
