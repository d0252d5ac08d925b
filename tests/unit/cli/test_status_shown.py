"""How a swarm's health reads, for people and for programs."""

import io

import msgspec
import pytest
from rich.console import Console

from giaann_p2p.cli.fsck_shown import report_lines
from giaann_p2p.cli.status_shown import overview_shown
from giaann_p2p.client.plain import overview_json, report_json
from giaann_p2p.swarm.members.capacity import Filling
from giaann_p2p.swarm.members.checkup import Damage, Report
from giaann_p2p.swarm.members.commands import GENERAL, Commands
from giaann_p2p.swarm.members.figures import CutFigures, Seen
from giaann_p2p.swarm.members.health import Health
from giaann_p2p.swarm.members.losses import Losses
from giaann_p2p.swarm.members.overview import Overview
from giaann_p2p.swarm.wire.identity import Peer, name_of, to_text
from giaann_p2p.swarm.wire.record import Load

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
CUT = (
    CutFigures(chunk=64, columns=1, parts=4),
    CutFigures(chunk=1024, columns=1200, parts=9000),
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
    excluded: dict[Peer, list[int]] | None = None,
    full: list[Peer] | None = None,
    filling: list[Filling] | None = None,
    closed: int = 0,
) -> Overview:
    return Overview(
        peers=list(peers),
        silent=silent or [],
        gone=gone or [],
        excluded=excluded or {},
        full=full or [],
        filling=filling or [],
        closed=closed,
        shards=256,
        replicas=2,
        health=health,
    )


def health(**given: float) -> Health:
    values = {"least": 2, "mean": 2.0, "under": 0, "lost": 0, "unsettled": 0}
    return msgspec.convert(values | given, Health)


def lines(found: Overview, width: int = 80, commands: Commands = GENERAL) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(overview_shown("bees", found, commands))
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


def test_the_columns_that_are_cut_are_shown() -> None:
    found = msgspec.structs.replace(overview(health(), STORING, STORING), cut=CUT)
    assert (
        "2 or more ready; cut by target: 1 column into 4 parts in chunks of 64 or more, 1,200"
        " columns into 9,000 parts in chunks of 1,024 or more"
    ) in " ".join(lines(found))


def test_compute_peers_show_how_fast_they_work() -> None:
    fast = msgspec.structs.replace(COMPUTING, load=Load(writes=1155, growth=850))
    shown = " ".join(lines(overview(health(), STORING, fast, COMPUTING)))
    assert "compute peers learn 1,155 sentences/s at work" in shown
    assert "they answer with 850 tokens/s at work" in shown


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
            "ready; lacking replicas: 1 shard; being copied: 7 replicas",
        ),
        (
            overview(health(least=0, under=256, lost=256), STORING, gone=[B, C]),
            "bees: lost. 1 storage peer; 256 shards, 2 replicas of each wanted, 0 or more ready; "
            "served by nobody: 256 shards; lacking replicas: 256 shards; vanished and "
            f"may come back: {name_of(B)}, {name_of(C)}. "
            "Restart the peers that served these shards, each with its original command and data "
            "folder",
        ),
        (
            overview(health(), STORING, STORING, excluded={B: [3, 17], C: [*range(9)]}),
            f"2 or more ready; {name_of(B)} differs from the other owners in 2 shards: 3, 17"
            f"; {name_of(C)} differs from the other owners in 9 shards: "
            "0, 1, 2, 3, 4, 5, 6, 7, ...",
        ),
        (
            overview(
                health(least=0, under=256, lost=256), gone=[Peer(bytes([n]) * 32) for n in range(9)]
            ),
            ", .... Restart the peers that served these shards, each with its original command and "
            "data folder",
        ),
    ],
)
def test_the_verdict_says_what_is_wrong_and_what_to_do(found: Overview, verdict: str) -> None:
    assert lines(found, 1000)[-1].endswith(verdict)


NOBODY_SERVES = {"least": 0, "under": 256, "lost": 256}
BEGINNING = msgspec.structs.replace(STORING, ready=0)


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (
            overview(health(**NOBODY_SERVES)),
            "bees: starting: no storage peer yet. 0 storage peers; 256 shards, 2 replicas of each"
            " wanted, 0 or more ready. Start 2 more storage peers: giaann storage --join LINK",
        ),
        (
            overview(health(**NOBODY_SERVES, unsettled=256), BEGINNING, BEGINNING),
            "bees: starting: 2 storage peers getting ready, which may take half a minute. 2 storage"
            " peers; 256 shards, 2 replicas of each wanted, 0 or more ready",
        ),
        (
            overview(health(), STORING, STORING, full=[A, B], closed=200),
            f"bees: full: no room for updates of 200 shards; full peers: {name_of(A)}, {name_of(B)}"
            ". 2 storage peers; 256 shards, 2 replicas of each wanted, 2 or more ready. Start more "
            "storage peers: giaann storage --join LINK; or restart the full ones with a larger "
            "--capacity",
        ),
        (
            overview(health(), STORING, STORING, full=[B]),
            f"bees: degraded. 2 storage peers; 256 shards, 2 replicas of each wanted, 2 or more "
            f"ready; full: {name_of(B)}",
        ),
        (
            overview(
                health(),
                STORING,
                STORING,
                filling=[Filling(A, 0.91, 7300.0), Filling(B, 0.86, 130.0), Filling(C, 0.9, None)],
            ),
            "bees: healthy. 2 storage peers; 256 shards, 2 replicas of each wanted, 2 or more "
            f"ready; nearly full: {name_of(A)} at 91%, {name_of(B)} at 86%, {name_of(C)} at 90%, "
            "full in 2 min at the present rate",
        ),
        (
            overview(health(), STORING, STORING, filling=[Filling(A, 0.91, None)]),
            f"2 or more ready; nearly full: {name_of(A)} at 91%",
        ),
    ],
)
def test_a_swarm_that_begins_or_is_full_says_so(found: Overview, verdict: str) -> None:
    assert lines(found, 1000)[-1].endswith(verdict)


LOST = Losses(shards=[3, 17], connections=2759, seen=400)
WHAT_IS_LOST = (
    "2 shards held 2,759 connections or more, last seen 10 min ago, and no live peer has all of"
    " them"
)


@pytest.mark.parametrize(
    ("found", "advice"),
    [
        (overview(health(**NOBODY_SERVES)), "Start 2 more storage peers: {add} 2{dir}"),
        (
            overview(health(**NOBODY_SERVES), STORING, silent=[A]),
            "Restart the peers that served these shards, with giaann swarm restart NAME{dir}",
        ),
        (overview(health(least=1, under=9), STORING), "Start 1 more storage peer: {add}{dir}"),
        (
            overview(health(), STORING, STORING, full=[A, B], closed=200),
            "Start more storage peers: {add}{dir}; or give each peer more with giaann swarm "
            "down{dir} and then giaann swarm up --capacity SIZE{dir}",
        ),
        (
            msgspec.structs.replace(overview(health(), STORING, STORING), losses=LOST),
            "Restart the peers that had these shards, with giaann swarm restart NAME{dir}; giaann"
            " fsck lists the shards",
        ),
    ],
)
@pytest.mark.parametrize("local", ["", " --dir bees"])
def test_the_advice_for_a_local_swarm_names_its_commands(
    found: Overview, advice: str, local: str
) -> None:
    wanted = advice.format(add="giaann swarm add storage", dir=local)
    assert lines(found, 1000, Commands(local))[-1].endswith(f". {wanted}")


def test_what_is_lost_is_told_alike_by_status_and_fsck() -> None:
    found = msgspec.structs.replace(overview(health(), STORING, STORING), losses=LOST, now=1000.0)
    verdict = lines(found, 1000)[-1]
    assert verdict.startswith(f"bees: lost: {WHAT_IS_LOST}. ")
    assert verdict.endswith(
        ". Restart the peers that had these shards, each with its original command and data"
        " folder; giaann fsck lists the shards"
    )
    _, told, *_ = report_lines(report(losses=LOST), "", 1000.0)
    assert told == f"{WHAT_IS_LOST}: 3, 17"


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
    found = overview(
        health(lost=3),
        STORING,
        gone=[C],
        excluded={B: [3, 17]},
        full=[A],
        filling=[Filling(C, 0.9, None)],
    )
    found = msgspec.structs.replace(found, cut=CUT)
    told = overview_json(found)
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
                "load": {"queue": 0, "reads": 12, "writes": 3, "growth": 0},
                "device": "",
                "slots": 0,
                "addresses": ["/ip4/10.0.0.1/tcp/4100/p2p/x"],
            }
        ],
        "silent": [],
        "gone": [to_text(C)],
        "excluded": {to_text(B): [3, 17]},
        "full": [to_text(A)],
        "filling": [{"peer": to_text(C), "share": 0.9, "seconds": None}],
        "closed": 0,
        "losses": {"shards": [], "connections": 0, "seen": 0},
        "cold": 0,
        "fetched": 0,
        "now": 0.0,
        "cut": [
            {"chunk": 64, "columns": 1, "parts": 4},
            {"chunk": 1024, "columns": 1200, "parts": 9000},
        ],
        "shards": 256,
        "replicas": 2,
        "edition": 0,
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
            [f"digest {'d' * 64}", "every shard is served, and its replicas agree"],
        ),
        (
            report(),
            "d" * 64,
            [
                f"digest {'d' * 64}",
                f"solo   {'d' * 64}",
                "the swarm and the solo database agree",
                "every shard is served, and its replicas agree",
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
                "the swarm and the solo database differ",
                "every shard is served, and its replicas agree",
            ],
        ),
        (
            report(digest="", lost=list(range(10)), apart=[11, 12], damaged=[Damage(13, [A, B])]),
            "",
            [
                "10 shards served by nobody: 0, 1, 2, 3, 4, 5, 6, 7, ...",
                "2 shards with replicas that have different chunks, at least for now: 11, 12",
                "shard 13 differs from replicas with the same chunks, at "
                f"{name_of(A)}, {name_of(B)}",
            ],
        ),
    ],
)
def test_a_report_says_what_is_wrong(found: Report, expected: str, told: list[str]) -> None:
    first, *rest = report_lines(found, expected, 0.0)
    assert first == "16 shards, 1,234 rows, 56,789 connections"
    assert rest == told


def test_a_report_for_programs() -> None:
    told = report_json(report(digest="", silent=[A], damaged=[Damage(3, [B])]))
    assert not told["agrees"]
    assert told["silent"] == [to_text(A)]
    assert told["damaged"] == [{"shard": 3, "peers": [to_text(B)]}]
    assert msgspec.json.encode(told)


def test_the_edition_that_counts_is_shown() -> None:
    found = msgspec.structs.replace(overview(health()), edition=3, replicas=4)
    assert "4 replicas of each wanted by edition 3, 2 or more ready" in " ".join(lines(found))
