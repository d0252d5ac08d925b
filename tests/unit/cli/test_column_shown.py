"""A column on the terminal: how many words it has, or has at least."""

import msgspec
import pytest

from giaann_p2p.cli.column_shown import show_column
from tests.unit.cli.pictures.columns import BEE


@pytest.mark.parametrize(("at_least", "said"), [(False, "bee: 12"), (True, "bee: at least 12")])
def test_a_column_says_how_many_words_it_has(
    capsys: pytest.CaptureFixture[str], at_least: bool, said: str
) -> None:
    show_column(msgspec.structs.replace(BEE, at_least=at_least), "the swarm")
    assert f"{said} words, 3 of them shown" in capsys.readouterr().out
