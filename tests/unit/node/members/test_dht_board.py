"""A member looks for records where the manifest says that they lie."""

import asyncio
from types import SimpleNamespace
from typing import Any, Literal, cast

import msgspec
import pytest

from giaann_p2p.net.hive.board import HiveBoard
from giaann_p2p.node.members.dht_board import dht_board
from giaann_p2p.node.members.gate import Gate
from giaann_p2p.node.members.joined_host import JoinedHost
from giaann_p2p.swarm.wire.manifest import Manifest
from tests.unit.node.helpers import identity


@pytest.mark.parametrize(("places", "near"), [("near", True), (msgspec.UNSET, False)])
def test_places_lie_near_each_other_only_in_swarms_whose_manifest_says_so(
    places: Literal["near"] | msgspec.UnsetType, near: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = list[bool]()

    async def start(*_: object, near: bool) -> SimpleNamespace:
        told.append(near)
        return SimpleNamespace(close=lambda: asyncio.sleep(0))

    async def main() -> None:
        manifest = Manifest.founded(identity(1), "bees", places=places)
        place: Any = SimpleNamespace(host=None, book=SimpleNamespace(seeds=list))
        gate: Any = SimpleNamespace(rules=None, clock=None, admission=None, token=b"")
        async with dht_board(cast(JoinedHost, place), manifest, cast(Gate, gate)):
            pass

    monkeypatch.setattr(HiveBoard, "start", start)
    asyncio.run(main())
    assert told == [near]
