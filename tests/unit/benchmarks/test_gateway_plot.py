"""The picture of what a gateway says and takes while many streams go on."""

import sys
from pathlib import Path

import pytest

from tests.benchmarks.gateway import each_second, main
from tests.benchmarks.gateway_plot import _averaged, draw_streams


def test_tokens_and_memory_are_drawn(tmp_path: Path) -> None:
    picture = tmp_path / "gateway.svg"
    draw_streams(picture, [500, 700, 600], [200.0, 201.0, 202.0], 650.0, 200)
    told = picture.read_text()
    for words in ("200 streams over HTTP", "Python client, mean", "the gateway's memory"):
        assert words in told


def test_tokens_are_averaged_over_some_seconds() -> None:
    assert _averaged([5, 15, 10, 10, 10, 25]) == [5, 10, 10, 10, 10, 14]


def test_the_tokens_of_each_second_are_what_was_said_meanwhile() -> None:
    assert each_second([0, 40, 40, 120]) == [40, 0, 80]


def test_without_matplotlib_it_says_what_to_install_before_it_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(sys, "argv", ["gateway", "--picture", str(tmp_path / "gateway.svg")])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "pip install 'giaann-p2p[pictures]'" in capsys.readouterr().err
