"""The measurement of `giaann prompt` takes turns, and refuses a command that went another way."""

import subprocess
from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from tests.benchmarks.prompt_command import by_turns, measured


def test_both_ways_take_turns() -> None:
    order = list[tuple[str, Sequence[str]]]()

    def measure(way: str, options: Sequence[str]) -> float:
        order.append((way, tuple(options)))
        return float(len(order))

    assert by_turns(2, measure) == {"asked": [1.0, 3.0], "joined": [2.0, 4.0]}
    assert order == [("asked", ()), ("joined", ("--no-gateway",))] * 2


def test_a_command_that_went_another_way_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: object) -> SimpleNamespace:
        went = "joined" if "--no-gateway" in command or "slow" in command else "asked"
        return SimpleNamespace(stderr=f"a warning\n{went}\n")

    monkeypatch.setattr(subprocess, "run", run)
    found = measured("link", "Bees", 3)
    assert set(found) == {
        f"prompt {way}, {which}s"
        for way in ("through the gateway", "with --no-gateway")
        for which in ("", "least, ")
    }
    with pytest.raises(RuntimeError, match="the command has not asked"):
        measured("link", "slow", 1)
