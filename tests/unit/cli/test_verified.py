"""What is said of peers that were found to lie."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from giaann_p2p.cli.verified import complain_of, lie_lines, lies_json, share_of, undecided_lines
from giaann_p2p.client.lies import Lie, ToldRow
from giaann_p2p.client.session import Session
from giaann_p2p.swarm.reading.row_vote import NOTHING, USUAL, Verify

WRONG = Lie("zorp1", 7, "honey", "make", ToldRow(9, 1200), ToldRow(8, 1), behind=False)
LESS = Lie("aaaa2", 3, "bee", None, None, ToldRow(1, 4), behind=True)


def visiting(lies: Sequence[Lie], undecided: int = 0, verify: Verify = NOTHING) -> Session:
    reading = SimpleNamespace(in_dispute=undecided)
    return cast(Session, SimpleNamespace(lies=list(lies), reading=reading, verify=verify))


def test_each_peer_is_told_once() -> None:
    assert list(lie_lines([WRONG, LESS, WRONG])) == [
        "peer aaaa2 returned less than most other owners know: no row for bee in shard 3, where "
        "the other owners returned 1 occurrence and 4 connections; it is not asked any more",
        "peer zorp1 returned wrong rows: 9 occurrences and 1,200 connections for honey/make in "
        "shard 7, where the other owners returned 8 occurrences and 1 connection (and 1 more); it "
        "is not asked any more",
    ]


def test_nobody_is_told_of_where_nobody_lied(capsys: pytest.CaptureFixture[str]) -> None:
    assert complain_of(visiting([])) == 0
    assert capsys.readouterr().err == ""
    assert list(lie_lines([])) == undecided_lines(0) == []


def test_what_is_known_is_not_told_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert complain_of(visiting([WRONG, LESS]), known=1) == 2
    err = capsys.readouterr().err
    assert "aaaa2" in err
    assert "zorp1" not in err
    assert complain_of(visiting([WRONG, LESS]), known=2) == 2
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("verify", "words"),
    [
        (Verify(1.0), "confirmed by a majority of its owners\n"),
        (NOTHING, "may rest on wrong rows; --v"),
    ],
)
def test_what_it_means_for_the_result(
    verify: Verify, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    complain_of(visiting([WRONG], verify=verify))
    assert words in capsys.readouterr().err


def test_what_nobody_can_tell_is_told_at_last(capsys: pytest.CaptureFixture[str]) -> None:
    complain_of(visiting([], 2), at_last=False)
    assert capsys.readouterr().err == ""
    complain_of(visiting([], 2))
    err = capsys.readouterr().err
    assert (
        "storage peers returned different rows 2 times, and it is not known which are wrong" in err
    )
    assert "giaann fsck" in err


def test_programs_are_told_all() -> None:
    found: dict[str, Any] = lies_json(visiting([WRONG, LESS], 3))
    assert found["undecided"] == 3
    one, other = found["lies"]
    assert (one["peer"], one["told"], one["true"]["occurrences"]) == (
        "zorp1",
        {"occurrences": 9, "connections": 1200},
        8,
    )
    assert (other["feature"], other["told"], other["behind"]) == (None, None, True)


def test_all_or_the_usual_share() -> None:
    assert (share_of(True), share_of(False)) == (1.0, USUAL)
