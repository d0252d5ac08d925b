"""Which peers hold which shards: a table in which shards with the same holders share a line."""

import io

import pytest
from rich.console import Console

from giaann_p2p.cli.shard_map import ShardMap, StoragePeer, map_table, shard_map, spans
from giaann_p2p.gateway.views import PeersNow, ShownLoad, ShownPeer


def peer(name: str, role: str = "storage", *, silent: bool = False) -> ShownPeer:
    return ShownPeer(
        name=name,
        role=role,
        state="active",
        room=None,
        capacity=0,
        used=0,
        ready=0,
        syncing=0,
        owns=0,
        load=ShownLoad(),
        reads_per_s=0,
        writes_per_s=0,
        version=None,
        since=0,
        silent=silent,
    )


def shown(found: ShardMap) -> list[list[str]]:
    console = Console(file=io.StringIO(), width=200)
    console.print(map_table(found))
    assert isinstance(console.file, io.StringIO)
    return [line.split() for line in console.file.getvalue().splitlines()]


FOUND = shard_map(
    PeersNow(
        peers=[peer("maya"), peer("maya", "compute"), peer("willi", silent=True)],
        shards=[
            [("willi", "cold"), ("maya", "ready"), ("flip", "syncing")],
            [("maya", "ready"), ("flip", "ready")],
            [],
            [("flip", "ready"), ("maya", "ready")],
        ],
    ),
    "bees",
    2,
)


def test_a_map_has_the_storage_peers_and_the_holders_that_serve_come_first() -> None:
    assert FOUND.peers == [StoragePeer("maya", "active"), StoragePeer("willi", "silent")]
    assert [one.label for one in FOUND.peers] == ["maya", "willi silent"]
    assert FOUND.shards[0] == [("maya", "ready"), ("flip", "syncing"), ("willi", "cold")]
    assert FOUND.ready == [1, 2, 0, 2]


def test_shards_with_the_same_holders_share_a_line() -> None:
    assert shown(FOUND) == [
        ["ready", "replica", "1", "replica", "2", "replica", "3", "shards"],
        ["1", "of", "2", "maya", "flip", "syncing", "willi", "cold", "0"],
        ["2", "of", "2", "flip", "maya", "1,", "3"],
        ["0", "of", "2", "2"],
    ]


def test_the_summary_says_what_is_lacking() -> None:
    assert FOUND.summary == (
        "2 storage peers; 4 shards, 2 replicas of each wanted; 2 shards with fewer ready, "
        "1 of them with none"
    )
    well = ShardMap(name="bees", replicas=1, peers=[], shards=[[("maya", "ready")]])
    assert well.summary == ("0 storage peers; 1 shard, 1 replica of each wanted, and all are ready")


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([], ""), ([5], "5"), ([0, 1, 2, 3], "0-3"), ([0, 2, 3, 9], "0, 2-3, 9")],
)
def test_spans_of_numbers(numbers: list[int], text: str) -> None:
    assert spans(numbers) == text
