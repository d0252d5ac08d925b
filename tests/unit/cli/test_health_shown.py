"""How a swarm's health reads, for people and for programs."""

import io

import msgspec
import pytest
from rich.console import Console

from giaann_p2p.cli.health_shown import overview_json, overview_shown, report_json, report_lines
from giaann_p2p.swarm.checkup import Damage, Report
from giaann_p2p.swarm.directory import Health
from giaann_p2p.swarm.identity import Peer, name_of, to_text
from giaann_p2p.swarm.overview import Overview, Seen
from giaann_p2p.swarm.record import Load

A, B, C = (Peer(bytes([letter]) * 32) for letter in b"abc")
STORING = Seen(
    peer=A,
    role="storage",
    state="active",
    capacity=1 << 30,
    used=5 << 20,
    ready=250,
    syncing=6,
    owns=256,
    load=Load(reads=12, writes=3),
    device="",
    slots=0,
    addresses=("/ip4/10.0.0.1/tcp/4100/p2p/x",),
)
COMPUTING = Seen(
    peer=B,
    role="compute",
    state="draining",
    capacity=0,
    used=0,
    ready=0,
    syncing=0,
    owns=0,
    load=Load(),
    device="cuda:0",
    slots=4,
    addresses=(),
)


def overview(
    health: Health,
    *peers: Seen,
    silent: list[Peer] | None = None,
    gone: list[Peer] | None = None,
    barred: dict[Peer, list[int]] | None = None,
) -> Overview:
    return Overview(
        peers=list(peers),
        silent=silent or [],
        gone=gone or [],
        barred=barred or {},
        shards=256,
        replicas=2,
        health=health,
    )


def health(**given: float) -> Health:
    values = {"least": 2, "mean": 2.0, "under": 0, "lost": 0, "unsettled": 0}
    return msgspec.convert(values | given, Health)


def lines(found: Overview, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(overview_shown("bees", found))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_the_table_fits_a_usual_terminal() -> None:
    shown = lines(overview(health(), STORING, STORING, COMPUTING))
    table = shown[: shown.index("")]
    assert not any("…" in line for line in table)
    assert table[1].split() == [
        *("mfqwcylb", "storage", "active", "250", "6", "256"),
        *("5.0", "MiB", "1.0", "GiB", "12", "3"),
    ]
    assert table[3].split() == ["mjrgeytc", "compute", "draining", "4", "slots", "cuda:0"]


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (
            overview(health(), STORING, STORING),
            "bees: healthy. 2 storage peers; 256 shards, 2 replicas of each wanted, "
            "2 or more ready",
        ),
        (
            overview(health(least=1, under=1, unsettled=7), STORING, STORING),
            "bees: degraded. 2 storage peers; 256 shards, 2 replicas of each wanted, 1 or more "
            "ready; lacking replicas: 1 shard; on their way: 7 replicas",
        ),
        (
            overview(health(least=0, under=256, lost=256), STORING, gone=[B, C]),
            "bees: lost. 1 storage peer; 256 shards, 2 replicas of each wanted, 0 or more ready; "
            "served by nobody: 256 shards; lacking replicas: 256 shards; went without leave and "
            f"may come back: {name_of(B)}, {name_of(C)}. "
            "Start 1 more storage peer: giaann storage --join LINK",
        ),
        (
            overview(health(), STORING, STORING, barred={B: [3, 17], C: [*range(9)]}),
            f"2 or more ready; {name_of(B)} holds something else than others of 2 shards: 3, 17"
            f"; {name_of(C)} holds something else than others of 9 shards: "
            "0, 1, 2, 3, 4, 5, 6, 7, ...",
        ),
        (
            overview(
                health(least=0, under=256, lost=256), gone=[Peer(bytes([n]) * 32) for n in range(9)]
            ),
            ", .... Start 2 more storage peers: giaann storage --join LINK",
        ),
    ],
)
def test_the_verdict_says_what_is_wrong_and_what_to_do(found: Overview, verdict: str) -> None:
    assert lines(found, 1000)[-1].endswith(verdict)


def test_who_does_not_answer_is_shown_as_silent() -> None:
    other = msgspec.structs.replace(STORING, peer=C)
    found = overview(health(least=1, under=256), STORING, other, silent=[C])
    first, second = lines(found)[1:3]
    assert (first.split()[2], second.split()[2]) == ("active", "silent")
    said = f"lacking replicas: 256 shards; no answer from {name_of(C)}. Start 1 more storage peer"
    verdict = lines(found, 1000)[-1]
    assert "bees: degraded. 1 storage peer; 256 shards" in verdict
    assert said in verdict


@pytest.mark.parametrize("device", ["[/]", "[bold]cuda:0", "[link=x]b"])
def test_what_a_stranger_calls_its_device_is_shown_as_it_is(device: str) -> None:
    found = overview(health(), STORING, msgspec.structs.replace(COMPUTING, device=device))
    assert device in lines(found)[2]


def test_an_overview_for_programs() -> None:
    told = overview_json(overview(health(lost=3), STORING, gone=[C], barred={B: [3, 17]}))
    assert msgspec.json.decode(msgspec.json.encode(told)) == {
        "verdict": "lost",
        "peers": [
            {
                "peer": to_text(A),
                "role": "storage",
                "state": "active",
                "capacity": 1 << 30,
                "used": 5 << 20,
                "ready": 250,
                "syncing": 6,
                "owns": 256,
                "load": {"queue": 0, "reads": 12, "writes": 3, "p95_ms": 0},
                "device": "",
                "slots": 0,
                "addresses": ["/ip4/10.0.0.1/tcp/4100/p2p/x"],
            }
        ],
        "silent": [],
        "gone": [to_text(C)],
        "barred": {to_text(B): [3, 17]},
        "shards": 256,
        "replicas": 2,
        "health": {"least": 2, "mean": 2.0, "under": 0, "lost": 3, "unsettled": 0},
    }


def report(**given: object) -> Report:
    values: dict[str, object] = {
        "shards": 16,
        "rows": 1234,
        "connections": 56789,
        "digest": "d" * 64,
        "lost": [],
        "apart": [],
        "under": [],
        "damaged": [],
        "silent": [],
    }
    return Report(**values | given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "expected", "told"),
    [
        (
            report(),
            "",
            [f"digest {'d' * 64}", "every shard is served, and all that serve one hold the same"],
        ),
        (
            report(),
            "d" * 64,
            [
                f"digest {'d' * 64}",
                f"solo   {'d' * 64}",
                "the swarm holds the same",
                "every shard is served, and all that serve one hold the same",
            ],
        ),
        (
            report(under=[3], silent=[A]),
            "e" * 64,
            [
                "1 shard with too few replicas: 3",
                f"no answer from {name_of(A)}",
                f"digest {'d' * 64}",
                f"solo   {'e' * 64}",
                "that is not the same",
                "every shard is served, and all that serve one hold the same",
            ],
        ),
        (
            report(digest="", lost=list(range(10)), apart=[11, 12], damaged=[Damage(13, [A, B])]),
            "",
            [
                "10 shards served by nobody: 0, 1, 2, 3, 4, 5, 6, 7, ...",
                "2 shards with replicas that have learned different chunks, or not all yet: 11, 12",
                f"shard 13 differs, though it learned the same, at {name_of(A)}, {name_of(B)}",
            ],
        ),
    ],
)
def test_a_report_says_what_is_wrong(found: Report, expected: str, told: list[str]) -> None:
    first, *rest = report_lines(found, expected)
    assert first == "16 shards, 1,234 rows, 56,789 connections"
    assert rest == told


def test_a_report_for_programs() -> None:
    told = report_json(report(digest="", silent=[A], damaged=[Damage(3, [B])]))
    assert not told["agrees"]
    assert told["silent"] == [to_text(A)]
    assert told["damaged"] == [{"shard": 3, "peers": [to_text(B)]}]
    assert msgspec.json.encode(told)
