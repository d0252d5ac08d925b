"""A swarm for boards, and the records on them."""

import asyncio
from collections.abc import Callable
from typing import Any

from giaann_p2p.net.hive.board import HiveBoard
from giaann_p2p.net.hive.host import Host
from giaann_p2p.node.clock import Clock
from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.pulse import pulse_of
from giaann_p2p.swarm.wire.record import Announcement, next_sequence, signed_as
from tests.unit.net.hive.helpers import Place, until
from tests.unit.swarm.helpers_pulses import SEED

SWARM = bytes(range(32))
LAYOUT = Layout(shards=8)
RULES = Rules(LAYOUT.shards)
NOW = 1_900_000_000.0


def record(identity: Identity, now: float, later: int = 0, **changes: Any) -> bytes:  # noqa: ANN401
    """Return a record, valid or not, whose pulses `helpers_pulses.beat` knows."""
    fields = {
        "swarm_id": SWARM,
        "peer": identity.peer,
        "role": "storage",
        "incarnation": 1,
        "sequence": next_sequence(now) + later,
        "issued": int(now),
        "lifetime": 300,
        "capacity": 1000,
        "anchor": pulse_of(SEED, identity.peer, 0).link,
        **changes,
    }
    return signed_as(identity, Announcement(**fields))


async def board(
    place: Place,
    host: Host | None = None,
    seeds: Callable[[], tuple[str, ...]] | None = None,
    ahead: float = 0.0,
    swarm: bytes = SWARM,
) -> HiveBoard:
    """Start a board, of a new host; its seed is the first host."""
    clock = Clock()
    host = host or await place.host()
    found = seeds or (lambda: place.hosts[0].addresses)
    return await HiveBoard.start(host, swarm, lambda: RULES, found, lambda: clock() + ahead)


CLOCK = Clock()


def flat(brought: list[list[bytes]]) -> list[bytes]:
    """Return what all have brought together, each record once."""
    return sorted({record for records in brought for record in records})


def all_of(place: Place) -> tuple[str, ...]:
    """Return where all hosts are."""
    return tuple(address for host in place.hosts for address in host.addresses)


async def settled(*boards: HiveBoard) -> None:
    """Have nobody join by itself any more, and nothing be under way."""
    for one in boards:
        await one._tried.wait()
    # A join that is cancelled during a call would leave a node at its answer.
    guards = [one._guard for one in boards if one._guard is not None]
    await until(
        lambda: (
            not any(len(one._searches) for one in boards) and not any(one._calls for one in guards)
        )
    )
    joining = [one._joining for one in boards if one._joining is not None]
    for task in joining:
        task.cancel()
    await asyncio.gather(*joining, return_exceptions=True)


async def all_closed(*boards: HiveBoard) -> None:
    await asyncio.gather(*[one.close() for one in boards])
