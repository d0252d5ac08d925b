"""`giaann reshard`: the plan that the founder sees, and the edition that peers receive."""

import json
import os
import pty
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from giaann_p2p.cli import reshard as command
from giaann_p2p.cli.reshard import reshard
from giaann_p2p.client import revoking, session
from giaann_p2p.errors import EditionError, TokenError, UsageError
from giaann_p2p.net.hive.key_file import open_key_file
from giaann_p2p.node.members.membership import Membership, TokenIssuer
from giaann_p2p.swarm.members.overview import Overview, overview
from giaann_p2p.swarm.members.placement import Placement
from giaann_p2p.swarm.members.reshard_plan import Filled, ReshardPlan, ShardSizes
from giaann_p2p.swarm.wire.edition import Edition, Editions
from giaann_p2p.swarm.wire.identity import name_of
from giaann_p2p.swarm.wire.link import Link
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.member_messages import EditionIs
from giaann_p2p.terminal import ctrl_c_told
from tests.helpers import DATA
from tests.helpers_swarm import LAYOUT, SHARDS
from tests.unit.swarm.members.test_peers_view import NOW, ONE, THREE, TWO, Seeing, record

MIB = 1 << 20
ALL = tuple(range(SHARDS))


class Swarm:
    """A swarm of three storage peers that is visited, and what it is sent."""

    def __init__(self, manifest: Manifest, monkeypatch: pytest.MonkeyPatch) -> None:
        editions = Editions(manifest)
        self.gate = SimpleNamespace(editions=editions, learn_edition=editions.learn)
        self.around, self.now, self.reached = Seeing(), NOW, 4
        self.sent: list[bytes] = []
        self.is_in_dht = False
        for peer in (ONE, TWO, THREE):
            self.around.tell(record(peer))
        own = self.around.placement(NOW).shards_of
        for peer in (ONE, TWO, THREE):
            shards = tuple(own(peer.peer).tolist())
            used = 10 * MIB * len(shards)
            self.around.tell(record(peer, 2, ready=shards, capacity=55 * MIB, used=used))

        @asynccontextmanager
        async def visit(link: Link, shows: Callable[[Any], bytes]) -> AsyncIterator[Swarm]:
            assert shows(ONE.peer) == b""
            yield self

        async def spread(visiting: Swarm, document: EditionIs) -> tuple[int, int]:
            self.sent.append(document.edition)
            return self.reached, 4

        monkeypatch.setattr(session, "visit", visit)
        monkeypatch.setattr(revoking, "spread", spread)

    async def join_dht(self) -> None:
        self.is_in_dht = True

    def overview(self) -> Overview:
        around = self.around
        placement = around.placement(NOW)
        return overview(around.directory, placement, around.rules, NOW)


WIKI = DATA / "wiki.txt"
NO_CUTS = {"cut": "", "cut_like": None}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    founder = open_key_file(tmp_path / "founder.key")
    manifest = Manifest.founded(founder, "town", layout=LAYOUT, replicas=2)
    (tmp_path / "manifest.json").write_bytes(manifest.to_bytes())
    return tmp_path


@pytest.fixture
def swarm(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Swarm:
    return Swarm(TokenIssuer(folder).manifest, monkeypatch)


def run(folder: Path, replicas: int = 3, chunk: int = 0, shards: int = 0, **how: object) -> None:
    manifest = TokenIssuer(folder).manifest
    link = str(Link(manifest.swarm_id, ("/ip4/10.0.0.1/tcp/1/p2p/x",)))
    reshard(link, folder, replicas, chunk, shards, **({"yes": True, **NO_CUTS} | how))


def test_what_would_move_is_shown_and_nothing_is_signed(
    folder: Path, swarm: Swarm, capsys: pytest.CaptureFixture[str]
) -> None:
    run(folder, dry_run=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "replicas of each shard: 2 now, 3 then"
    assert lines[1] == (
        f"peers would fetch {SHARDS} replicas of shards, about 40.0 MiB in memory; less on the wire"
    )
    assert len(lines) == 2
    assert swarm.is_in_dht
    assert swarm.sent == []
    assert TokenIssuer(folder).editions.number == 0


def test_the_edition_is_signed_kept_and_sent(
    folder: Path, swarm: Swarm, capsys: pytest.CaptureFixture[str]
) -> None:
    run(folder)
    kept = TokenIssuer(folder).editions
    assert (kept.number, kept.rules.replicas, swarm.sent) == (1, 3, [kept.to_bytes()])
    assert capsys.readouterr().out.splitlines()[-1] == "edition 1: 4 of 4 peers were told"
    run(folder)  # with the same number, or none, the same edition is sent again
    run(folder, 0)
    assert swarm.sent == [kept.to_bytes()] * 3


def test_chunks_grow_with_or_without_further_replicas(
    folder: Path, swarm: Swarm, capsys: pytest.CaptureFixture[str]
) -> None:
    run(folder, 0, 1024)
    rules = TokenIssuer(folder).editions.rules
    assert (rules.edition, rules.replicas, rules.sizes) == (1, 2, (64, 1024))
    assert capsys.readouterr().out.splitlines() == [
        "sentences in a chunk of a new text: 64 now, 1,024 then",
        "edition 1: 4 of 4 peers were told",
    ]
    run(folder, 3, 2048, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert (told["edition"], told["replicas"]["after"]) == (2, 3)
    assert told["chunk"] == {"before": 1024, "after": 2048}
    with pytest.raises(EditionError, match="a chunk can only grow: give 2049 to 16384, not 64"):
        run(folder, 3, 64)


def test_shards_double_and_the_sizes_then_are_shown(
    folder: Path, swarm: Swarm, capsys: pytest.CaptureFixture[str]
) -> None:
    run(folder, 0, shards=2 * SHARDS)
    rules = TokenIssuer(folder).editions.rules
    assert (rules.edition, rules.replicas, rules.layout) == (1, 2, LAYOUT.with_shards(2 * SHARDS))
    assert capsys.readouterr().out.splitlines() == [
        f"shards: {SHARDS} now, {2 * SHARDS} then; peers divide those they hold",
        "bytes of a shard, about: 10.0 MiB now, 5.0 MiB then",
        "bytes of a shard where they are largest, about: 10.0 MiB now, 5.0 MiB then",
        "peers would fetch 2 replicas of shards, about 10.0 MiB in memory; less on the wire",
        "edition 1: 4 of 4 peers were told",
    ]
    run(folder, 3, shards=8 * SHARDS, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert (told["edition"], told["replicas"]["after"]) == (2, 3)
    assert told["shards"] == {"before": 2 * SHARDS, "after": 8 * SHARDS}
    assert rules.shards == 2 * SHARDS


def test_columns_are_cut_with_larger_chunks(
    folder: Path, swarm: Swarm, capsys: pytest.CaptureFixture[str]
) -> None:
    run(folder, 0, 128, cut="sea=4,day=16")
    rules = TokenIssuer(folder).editions.rules
    assert [len(columns) for columns in rules.cuts] == [0, 2]
    assert capsys.readouterr().out.splitlines() == [
        "sentences in a chunk of a new text: 64 now, 128 then",
        "columns that are cut by target: 0 now, 2 then",
        "their parts: 0 now, 20 then",
        "edition 1: 4 of 4 peers were told",
    ]
    run(folder, 0, 256, cut_like=WIKI, as_json=True)
    told = json.loads(capsys.readouterr().out)["cut"]
    assert told["before"] == {"day": 16, "sea": 4}
    assert told["before"].items() <= told["after"].items()
    assert told["after"]["anarchism"] > 1


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"cut": "day=4"}, "only in chunks of a new size: give a larger --chunk, too"),
        ({"cut": "day=4", "cut_like": WIKI, "chunk": 128}, "give --cut to name the columns, or"),
        ({"cut": "day=5", "chunk": 128}, "must be a power of two"),
        ({"cut_like": Path("no.txt"), "chunk": 128}, r"no\.txt"),
    ],
)
def test_columns_that_cannot_be_cut(
    folder: Path, swarm: Swarm, how: dict[str, Any], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        run(folder, 0, **how)
    assert TokenIssuer(folder).editions.number == 0


def test_sizes_of_shards_are_told(
    folder: Path, swarm: Swarm, capsys: pytest.CaptureFixture[str]
) -> None:
    swarm.around.tell(record(TWO, 3, ready=ALL[:1], capacity=55 * MIB, used=30 * MIB))
    run(folder, 0, shards=2 * SHARDS, dry_run=True, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["largest_shard"] == {"before": 20 * MIB, "after": 10 * MIB}  # of its two owners
    owned = len(swarm.around.placement(NOW).shards_of(TWO.peer))
    mean = (10 * SHARDS + 10 * owned) * MIB // SHARDS
    assert 0 < owned < SHARDS
    assert told["mean_shard"] == {"before": mean, "after": mean // 2}
    assert told["bytes"] == sum(_size(swarm, shard % SHARDS) // 2 for shard in _fetched(swarm))


def _size(swarm: Swarm, shard: int) -> int:
    return (20 if TWO.peer in swarm.around.placement(NOW).owners(shard) else 10) * MIB


def _fetched(swarm: Swarm) -> list[int]:
    """Return each child that a peer gets which did not own its parent, when shards double."""
    before = swarm.around.placement(NOW)
    after = Placement.of(swarm.around.members(NOW), 2 * SHARDS, 2, 2, SHARDS)
    pairs = [(shard, peer) for shard in range(2 * SHARDS) for peer in after.owners(shard)]
    return [shard for shard, peer in pairs if peer not in before.owners(shard % SHARDS)]


def test_peers_that_would_have_little_room_are_named(
    folder: Path, swarm: Swarm, capsys: pytest.CaptureFixture[str]
) -> None:
    swarm.around.tell(record(ONE, 3, ready=ALL[:2], capacity=41 * MIB, used=20 * MIB))
    run(folder, dry_run=True, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["full"][name_of(ONE.peer)] > 0.9
    assert told["replicas"] == {"before": 2, "after": 3}
    assert (told["edition"], told["peers"], told["told"]) == (0, 0, 0)
    run(folder, dry_run=True)
    assert "little room is left then: " + name_of(ONE.peer) in capsys.readouterr().out


def test_peers_that_have_little_room_for_a_while_or_for_good_are_named_apart(
    folder: Path, swarm: Swarm, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    filled = [Filled(ONE.peer, 0.95, 0.99)] * 6 + [Filled(TWO.peer, 0.6, 0.921)]
    plan = ReshardPlan(0, 0, filled, ShardSizes(1, 1), ShardSizes(1, 1))
    monkeypatch.setattr(command, "_planned", lambda *_: plan)
    run(folder, dry_run=True)
    assert capsys.readouterr().out.splitlines()[1:] == [
        "little room is left then: "
        + "; ".join(4 * [f"{name_of(ONE.peer)} at 95%"])
        + " and 2 more",
        "little room is left until other peers have what these hand over: "
        f"{name_of(TWO.peer)} at 92%, 60% then",
    ]
    run(folder, dry_run=True, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["full"] == {name_of(ONE.peer): 0.95}
    assert told["full_meanwhile"] == {name_of(TWO.peer): 0.921}


def test_an_edition_that_the_swarm_has_and_the_folder_lacks_is_kept_first(
    folder: Path, swarm: Swarm
) -> None:
    issuer = TokenIssuer(folder)
    assert issuer.founder is not None
    theirs = Edition.signed(issuer.founder, issuer.manifest.swarm_id, 6, 2).to_bytes()
    assert swarm.gate.editions.learn(theirs)
    run(folder)
    assert issuer.editions.number == 7


@pytest.mark.parametrize(
    ("replicas", "error", "says"),
    [
        (4, UsageError, "4 replicas of a shard need as many storage peers, but 3 are there: sta"),
        (1, EditionError, "give 3 to 64, not 1"),
        (65, EditionError, "give 3 to 64, not 65"),
        (2, UsageError, "nothing would change, and there is no edition yet"),
        (0, UsageError, "nothing would change, and there is no edition yet"),
    ],
)
def test_what_cannot_be_is_told(
    folder: Path, swarm: Swarm, replicas: int, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        run(folder, replicas)
    assert (swarm.sent, TokenIssuer(folder).editions.number) == ([], 0)


@pytest.mark.parametrize(
    ("shards", "says"),
    [
        (SHARDS // 2, "can only be doubled, up to 65,536"),
        (3 * SHARDS, "can only be doubled, up to 65,536"),
        (1 << 17, "can only be doubled, up to 65,536"),
        (8 * SHARDS, f"{8 * SHARDS} shards are more than 4 times the present {SHARDS}.*first"),
        (SHARDS, "nothing would change"),
    ],
)
def test_numbers_of_shards_that_cannot_be(
    folder: Path, swarm: Swarm, shards: int, says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        run(folder, 0, shards=shards)
    assert (swarm.sent, TokenIssuer(folder).editions.number) == ([], 0)


def test_only_the_founder_may(folder: Path, swarm: Swarm) -> None:
    (folder / "founder.key").unlink()
    with pytest.raises(TokenError, match="only the swarm's founder"):
        run(folder)


def test_it_fails_if_nobody_was_reached(folder: Path, swarm: Swarm) -> None:
    swarm.reached = 0
    with pytest.raises(typer.Exit):
        run(folder)


def test_an_edition_that_was_signed_while_it_asked_is_not_signed_again(
    folder: Path, swarm: Swarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = TokenIssuer(folder)

    async def sign() -> None:
        edition = other.next_edition(shards=2 * SHARDS)
        assert edition is not None
        other.keep_next(edition)

    monkeypatch.setattr(command, "_ask", sign)
    with pytest.raises(EditionError, match="edition 1 was signed meanwhile"):
        run(folder, yes=False)
    assert (other.editions.number, other.editions.rules.replicas, swarm.sent) == (1, 2, [])


@pytest.mark.parametrize(
    ("typed", "goes_on"),
    [(b"y\n", True), (b" YES\n", True), (b"n\n", False), (b"\n", False), (b"\x04", False)],
)
def test_it_asks_first(
    folder: Path, swarm: Swarm, monkeypatch: pytest.MonkeyPatch, typed: bytes, goes_on: bool
) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, typed)
    with os.fdopen(theirs) as terminal:
        monkeypatch.setattr(command.sys, "stdin", terminal)
        if goes_on:
            run(folder, yes=False)
        else:
            with pytest.raises(typer.Abort):
                run(folder, yes=False)
    os.close(ours)
    assert len(swarm.sent) == TokenIssuer(folder).editions.number == goes_on


def test_it_goes_on_without_a_terminal_only_if_told(folder: Path, swarm: Swarm) -> None:
    with pytest.raises(UsageError, match="give --yes to go on"):
        run(folder, yes=False)
    assert (swarm.sent, TokenIssuer(folder).editions.number) == ([], 0)


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_ctrl_c_before_it_has_signed_says_so(
    folder: Path, swarm: Swarm, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "_planned", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(folder)
    assert capsys.readouterr().err == (
        "giaann: nothing was signed, and the swarm's rules are as before\n"
    )
    assert TokenIssuer(folder).editions.number == 0


@pytest.mark.parametrize("replicas", [3, 0], ids=["first", "again"])
def test_ctrl_c_after_it_has_signed_says_so(
    folder: Path,
    swarm: Swarm,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    replicas: int,
) -> None:
    if not replicas:
        run(folder)
    monkeypatch.setattr(revoking, "spread", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(folder, replicas)
    assert capsys.readouterr().err == (
        "giaann: edition 1 is signed, but some peers may not have been told; the same command sends"
        " it again\n"
    )
    assert TokenIssuer(folder).editions.number == 1


def test_ctrl_c_while_it_signs_does_not_leave_that_open(
    folder: Path, swarm: Swarm, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = Membership.write_edition

    def pressed(membership: Membership, edition: bytes) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        keep(membership, edition)

    monkeypatch.setattr(Membership, "write_edition", pressed)
    with pytest.raises(KeyboardInterrupt), ctrl_c_told():
        run(folder)
    assert "edition 1 is signed" in capsys.readouterr().err
    assert TokenIssuer(folder).editions.number == 1
    assert swarm.sent == []
