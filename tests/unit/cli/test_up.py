"""What `giaann swarm up` makes of its options."""

from pathlib import Path
from typing import Any

import pytest

from giaann_p2p.cli import swarm
from giaann_p2p.errors import UsageError
from giaann_p2p.local.roles import Spec


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Spec]:
    """The specs of the swarms that would have been started."""
    found = list[Spec]()

    def run(given: Any, *_: object) -> None:  # noqa: ANN401  (a swarm)
        found.append(given.spec)

    monkeypatch.setattr(swarm, "_run", run)
    return found


def test_a_gateway_teaches_only_if_that_is_allowed(tmp_path: Path, started: list[Spec]) -> None:
    swarm.up(folder=tmp_path, serve=True)
    swarm.up(folder=tmp_path, serve=True, allow_training=True)
    off, on = (spec.arguments["gateway"] for spec in started)
    assert (off, on) == ([], ["--allow-training"])
    assert [spec.gateways for spec in started] == [1, 1]


def test_without_a_gateway_nothing_can_be_allowed(tmp_path: Path, started: list[Spec]) -> None:
    with pytest.raises(UsageError, match="give both"):
        swarm.up(folder=tmp_path, allow_training=True)
    assert started == []


def test_rules_are_raised_without_a_command_if_that_is_wanted(
    tmp_path: Path, started: list[Spec]
) -> None:
    swarm.up(folder=tmp_path)
    swarm.up(folder=tmp_path, reshard=swarm.Reshard.AUTO)
    assert [spec.reshard for spec in started] == ["off", "auto"]


def test_column_segments_are_of_a_new_swarm_and_usually_none(
    tmp_path: Path, started: list[Spec]
) -> None:
    swarm.up(folder=tmp_path)
    swarm.up(folder=tmp_path, column_segments=4)
    assert [spec.column_segments for spec in started] == [0, 4]


def test_columns_to_cut_are_named_or_shown_by_a_text_that_peers_find(
    tmp_path: Path, started: list[Spec], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    swarm.up(folder=tmp_path)
    swarm.up(folder=tmp_path, cut="day=16")
    swarm.up(folder=tmp_path, cut_like=Path("text"))
    found = [(spec.cut, spec.cut_like) for spec in started]
    assert found == [("", ""), ("day=16", ""), ("", str(tmp_path / "text"))]
    with pytest.raises(UsageError, match="not both"):
        swarm.up(folder=tmp_path, cut="day=16", cut_like=Path("text"))
