"""A column on the terminal: how many words it has, or has at least."""

import json
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from giaann_p2p.cli.column_shown import show_column
from giaann_p2p.cli.main import app
from giaann_p2p.cli.manner import samplings_of
from tests.unit.cli.pictures.columns import BEE


@pytest.mark.parametrize(("at_least", "said"), [(False, "bee: 12"), (True, "bee: at least 12")])
def test_a_column_says_how_many_words_it_has(
    capsys: pytest.CaptureFixture[str], at_least: bool, said: str
) -> None:
    show_column(msgspec.structs.replace(BEE, at_least=at_least), "the swarm")
    assert f"{said} words, 3 of them shown" in capsys.readouterr().out


@pytest.mark.parametrize("profile", ["words", "subwords"])
def test_a_noun_that_is_not_utf_8_is_unknown(tmp_path: Path, profile: str) -> None:
    file, db, runner = tmp_path / "bees.txt", str(tmp_path / "db"), CliRunner()
    file.write_text("Bees make honey from the nectar that they collect from flowers in the summer.")
    learn = ["solo", "train", str(file), "--db", db, "--profile", profile]
    assert runner.invoke(app, learn).exit_code == 0
    ask = ["solo", "column", "f\udcc3", "--db", db]
    shown, plain = runner.invoke(app, ask), runner.invoke(app, [*ask, "--json"])
    assert (shown.exit_code, plain.exit_code) == (3, 3)
    assert "has not learned this noun" in shown.stdout
    assert json.loads(plain.stdout)["concept"] == "f\ufffd"


def test_a_stop_text_that_is_not_utf_8_can_be_sent() -> None:
    (one,) = samplings_of(0, 0, 1, 0, 1, ["f\udcc3"], 1)
    assert one.stop == ("f\ufffd",)
    assert msgspec.json.encode(one)
