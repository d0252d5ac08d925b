"""Texts that a command learns: bad ones, and Ctrl-C."""

from pathlib import Path

import pytest
import typer

from giaann_p2p.cli.learning import Learning
from giaann_p2p.errors import TextError
from giaann_p2p.solo.reports import Trained

A, B, BAD = Path("a"), Path("b"), Path("bad")


def files_of(path: Path) -> list[Path]:
    if path == BAD:
        raise TextError(f"{path}: no")
    return [path]


def learning(*named: Path) -> tuple[Learning[Trained], list[Trained]]:
    told: list[Trained] = []
    return Learning(named, files_of, told.append), told


def report(name: str, sequences: int = 3, interrupted: bool = False) -> Trained:
    return Trained(name, 9, sequences, sequences, interrupted=interrupted)


def ended(one: Learning[Trained], **given: bool) -> int:
    try:
        one.end(lambda _: given.get("complete", True))
    except typer.Exit as end:
        return int(end.exit_code)
    return 0


def test_all_is_learned(capsys: pytest.CaptureFixture[str]) -> None:
    one, told = learning(A, B)
    for file in one:
        with one.attempt() as reports:
            reports.append(report(file.name))
    assert ([got.name for got in told], ended(one)) == (["a", "b"], 0)
    assert ended(one, complete=False) == 1
    assert capsys.readouterr().err == ""


def test_a_bad_text_is_told_and_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    one, told = learning(BAD, A, B)
    assert capsys.readouterr().err == "giaann: bad: no; continuing with the others\n"
    for file in one:
        with one.attempt() as reports:
            if file == A:
                raise TextError("a changed")
            reports.append(report(file.name))
    assert ([got.name for got in told], ended(one)) == (["b"], 1)
    assert capsys.readouterr().err == "giaann: a changed\n"
    with pytest.raises(TextError, match="bad: no"):
        learning(BAD)


def test_what_was_learned_when_it_was_interrupted(capsys: pytest.CaptureFixture[str]) -> None:
    one, told = learning(A, B)
    for file in one:
        with one.attempt() as reports:
            reports.append(report(file.name, interrupted=True))
    assert ([got.name for got in told], ended(one)) == (["a"], 130)
    said = (
        "giaann: interrupted; 3 sentences learned, and kept: the same command continues from there"
    )
    assert capsys.readouterr().err == f"{said}\n"


def test_what_was_learned_when_it_was_ended_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    one, told = learning(A)

    def story() -> None:
        with one.attempt():
            one.show(report("a", 5))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        story()
    one.cut_short()
    assert ([(got.name, got.interrupted) for got in told], ended(one)) == ([("a", True)], 130)
    assert "interrupted; 5 sentences learned, and kept" in capsys.readouterr().err


def test_nothing_is_learned(capsys: pytest.CaptureFixture[str]) -> None:
    one, _ = learning(A)
    with one.attempt() as reports:
        reports.append(report("a", 0))
    assert ended(one) == 1
    assert "nothing was learned" in capsys.readouterr().err
    known, _ = learning(A)
    with known.attempt() as reports:
        reports.append(Trained("a", 9, chunks_known=1))
    assert ended(known) == 0
