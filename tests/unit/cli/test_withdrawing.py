"""What a founder is told, and in which order things happen to its list."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer

from giaann_p2p.cli import withdrawing
from giaann_p2p.cli.withdrawing import Founding, shown
from giaann_p2p.errors import TokenError
from giaann_p2p.net.hive.key_file import open_key_file
from giaann_p2p.node.members.membership import TokenIssuer
from giaann_p2p.swarm.training.orphan_quorum import Agreed
from giaann_p2p.swarm.wire.admission import Admission
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.link import Link
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.revoked import Revoked
from giaann_p2p.swarm.wire.withdrawn import roots_in

JOB, OTHER_JOB = b"\1" * 16, b"\2" * 16
ROOT = bytes(16)
LIAR = Identity.from_seed(b"l" * 32)
FOUND = Agreed({(JOB, 1): ROOT, (JOB, 2): ROOT, (OTHER_JOB, 1): ROOT}, set(), 0, 3)


def test_what_is_found_is_shown_by_job() -> None:
    assert shown(FOUND) == [
        f"job {JOB.hex()}: 2 chunks",
        f"job {OTHER_JOB.hex()}: 1 chunk",
        "to be withdrawn: 3 chunks",
    ]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Agreed({}, set(), 0, 0), "no storage peer owns any shard"),
        (Agreed({}, set(), 3, 3), "none of 3 owners answered; run `giaann token withdraw` later"),
        (Agreed({}, set(), 0, 3), "the owners report nothing to withdraw"),
        (FOUND._replace(silent=1), "1 of 3 owners did not answer; run `giaann token withdraw`"),
        (Agreed({}, {(JOB, 1)}, 0, 3), "not withdrawn: 1 chunk, reported by too few of 3 owners"),
    ],
)
def test_what_is_not_as_hoped_is_told(found: Agreed, words: str) -> None:
    assert words in "\n".join(shown(found))


class Swarm:
    """A swarm that is visited: what it is told, and what its owners tell."""

    def __init__(self, manifest: Manifest) -> None:
        self.gate = SimpleNamespace(admission=Admission(manifest))
        self.gate.learn = self.gate.admission.learn
        self.told: list[Revoked] = []
        self.asked: list[int] = []
        self.reached, self.found = 4, FOUND
        self.in_dht = False

    async def join_dht(self) -> None:
        self.in_dht = True


@pytest.fixture
def giver(tmp_path: Path) -> TokenIssuer:
    founder = open_key_file(tmp_path / "founder.key")
    (tmp_path / "manifest.json").write_bytes(Manifest.founded(founder, "club").to_bytes())
    return TokenIssuer(tmp_path)


@pytest.fixture
def swarm(giver: TokenIssuer, monkeypatch: pytest.MonkeyPatch) -> Swarm:
    one = Swarm(giver.manifest)

    @asynccontextmanager
    async def visit(link: Link, shows: Callable[[bytes], bytes]) -> AsyncIterator[Swarm]:
        yield one

    async def tell(visiting: Swarm, revoked: bytes) -> tuple[int, int]:
        one.told.append(Revoked.read(revoked, giver.manifest.swarm_id, giver.manifest.founder))
        assert one.gate.admission.revoked.number < one.told[-1].number  # the revoked hear it, too
        return one.reached, 4

    async def orphans(visiting: Swarm, number: int) -> Agreed:
        one.asked.append(number)
        return one.found

    for name, does in (("visit", visit), ("tell", tell), ("orphans", orphans)):
        monkeypatch.setattr(withdrawing, name, does)
    return one


def carry_out(giver: TokenIssuer, **how: bool) -> None:
    link = str(Link(giver.manifest.swarm_id, ("/ip4/10.0.0.1/tcp/1/p2p/x",)))
    withdraws = how.pop("withdraws", True)
    asyncio.run(Founding(link, giver, **how).carry_out(withdraws=withdraws))


def disown(giver: TokenIssuer) -> None:
    giver.revoke({LIAR.peer}, set(), [LIAR.peer])


def test_the_swarm_is_told_the_list_asked_and_told_what_is_withdrawn(
    giver: TokenIssuer, swarm: Swarm, capsys: pytest.CaptureFixture[str]
) -> None:
    disown(giver)
    carry_out(giver)
    assert swarm.in_dht
    assert [one.number for one in swarm.told] == [1, 2]
    assert swarm.asked == [1]
    assert roots_in(swarm.told[-1].withdrawn) == FOUND.roots
    assert swarm.told[-1] == giver.list
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "list 1: 1 revoked, 1 of them disowned; 4 of 4 peers were told"
    assert lines[-1] == (
        "list 2: 1 revoked, 1 of them disowned, 3 chunks withdrawn; 4 of 4 peers were told"
    )


def test_it_may_only_be_shown_and_read_by_programs(
    giver: TokenIssuer, swarm: Swarm, capsys: pytest.CaptureFixture[str]
) -> None:
    disown(giver)
    carry_out(giver, dry_run=True, as_json=True)
    assert [one.number for one in swarm.told] == [1]
    said = json.loads(capsys.readouterr().out)
    assert said.pop("found") == {
        "owners": 3,
        "silent": 0,
        "chunks": 3,
        "jobs": {JOB.hex(): 2, OTHER_JOB.hex(): 1},
        "left": 0,
        "no_room": 0,
    }
    assert said == {
        **{"list": 1, "revoked": 1, "disowned": 1, "withdrawn": 0, "peers": 4, "told": 4}
    }


def test_where_nobody_is_reached_nothing_is_withdrawn_and_it_fails(
    giver: TokenIssuer, swarm: Swarm, capsys: pytest.CaptureFixture[str]
) -> None:
    disown(giver)
    swarm.reached = 0
    with pytest.raises(typer.Exit):
        carry_out(giver)
    assert swarm.asked == []
    assert "0 of 4 peers were told" in (out := capsys.readouterr().out)
    assert "nothing is withdrawn yet; run `giaann token withdraw` later to search again" in out


def test_where_no_owner_answers_it_fails(giver: TokenIssuer, swarm: Swarm) -> None:
    disown(giver)
    swarm.found = Agreed({}, set(), 3, 3)
    with pytest.raises(typer.Exit):
        carry_out(giver)
    assert len(swarm.told) == 1


def test_who_is_only_revoked_has_nothing_withdrawn(giver: TokenIssuer, swarm: Swarm) -> None:
    giver.revoke({LIAR.peer}, set())
    carry_out(giver, withdraws=False)
    assert swarm.asked == []


def test_a_folder_that_lacks_the_swarms_newest_list_gets_it_and_nothing_is_told(
    giver: TokenIssuer, swarm: Swarm
) -> None:
    """Else what is withdrawn by that list would be on no later one."""
    founder = giver.founder
    assert founder is not None
    newer = Revoked(giver.manifest.swarm_id).next(founder, set(), (), FOUND.roots)
    swarm.gate.learn(newer.to_bytes())
    disown(giver)
    with pytest.raises(
        TokenError, match=r"already has list 1, which was not in .*; it is saved there now"
    ):
        carry_out(giver)
    assert swarm.told == []
    assert giver.list == newer
    disown(giver)
    assert roots_in(giver.list.withdrawn) == FOUND.roots
