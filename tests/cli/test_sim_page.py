"""The simulator's page is true: its commands are there, and its script plays."""

import re
from pathlib import Path

import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.sim.faults import KINDS
from giaann_p2p.sim.scenario import COMMANDS, Scenario, play
from tests.cli.conftest import Run
from tests.sim.ending import every_swarm_ends

__all__ = ["every_swarm_ends"]  # a fixture: the scripts' machines end with their test

PAGE = (Path(__file__).parents[2] / "docs" / "simulator.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)


def test_its_script_plays_as_it_is_written() -> None:
    (script,) = [text for kind, text in BLOCKS if kind == "text" and text.startswith("storages")]
    assert play(script) == script


def test_it_names_every_command_as_it_is_written() -> None:
    table = PAGE.split("| command |")[1]
    examples = [line.replace("\\|", "|") for line in re.findall(r"^\| (`.*?`) \|", table, re.M)]
    lines = [line for example in examples for line in re.findall(r"`(.*?)`", example)]
    assert all(any(line.startswith(name) for line in lines) for name in COMMANDS)
    scenario = Scenario()
    for line in ["storages 3", *lines]:
        if not line.startswith(("go on", "restart")):
            scenario = Scenario()
            for first in ("storages 5", "client push 0-9"):
                scenario.do(first)
        try:
            scenario.do(line)
        except UsageError as error:
            pytest.fail(f"{line}: {error}")


def test_it_names_every_fault() -> None:
    table = PAGE.split("| fault |")[1].split("\n\n")[0]
    named = {name for cell in re.findall(r"^\| (.*?) \|", table, re.M) for name in cell.split(", ")}
    assert {kind.name for kind in KINDS} <= named


def test_its_options_are_there(giaann: Run) -> None:
    told = giaann("sim", "--help").stdout
    commands = [line for kind, text in BLOCKS if kind == "sh" for line in text.splitlines()]
    assert len(commands) == 2
    options = set(re.findall(r"--[a-z]+[a-z-]*", PAGE))
    assert len(options) > 8
    assert not [option for option in options if option not in told]
