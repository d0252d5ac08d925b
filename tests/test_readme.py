"""The README is true: its commands and its example run, and print what it says."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from giaann_p2p.errors import GiaannError
from giaann_p2p.local.remote import Remote
from tests.cli.conftest import GIAANN

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder as the reader's, who has cloned the project and stands in it."""
    folder = tmp_path_factory.mktemp("clone")
    (folder / "tests").symlink_to(ROOT / "tests")
    command = folder / "bin" / "giaann"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{GIAANN[0]}" -c "{GIAANN[2]}" "$@"\n')
    command.chmod(0o755)
    yield folder
    with suppress(GiaannError):
        Remote(folder / "my-swarm").down(now=True)


def _run(folder: Path, command: list[str]) -> str:
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def test_the_first_commands_are_there() -> None:
    block = next(block for kind, block in BLOCKS if kind == "sh")
    scripts = re.findall(r"^(scripts/\w+) ", block, re.MULTILINE)
    assert scripts == ["scripts/demo", "scripts/test"]
    assert all(os.access(ROOT / script, os.X_OK) for script in scripts)


def _commands(of_swarm: bool) -> list[str]:
    """Return the commands that run a swarm of processes, or the others."""
    return [
        line
        for kind, block in BLOCKS
        if kind == "sh" and ("giaann swarm up" in block) == of_swarm
        for line in block.splitlines()
        if line.startswith("giaann ")
    ]


@pytest.fixture(scope="module")
def output(folder: Path) -> list[str]:
    """What the first commands write; what they leave is there for those that come later."""
    commands = _commands(of_swarm=False)
    assert len(commands) == 10
    return [_run(folder, ["bash", "-c", command]) for command in commands]


def test_the_commands_run(output: list[str]) -> None:
    assert "learned 139 of 141 sentences" in output[0]
    assert "appears in English from 1642 as anarchisme" in output[1]
    assert "accuracy 0.9995" in output[3]
    assert "all is well" in output[7]
    recalled = re.search(r"first 12 words as a prompt \| (0\.\d+) \|", README)
    assert recalled is not None
    assert f"recalled {recalled[1]}" in output[4]


@pytest.mark.usefixtures("output")
def test_the_swarm_that_it_shows(folder: Path) -> None:
    commands = _commands(of_swarm=True)
    verbs = ["swarm", "train", "prompt", "column", "swarm", "prompt", "fsck", "swarm"]
    assert [command.split()[1] for command in commands] == verbs
    output = [_run(folder, ["bash", "-c", command]) for command in commands[:-1]]
    assert "learned 139 of 141 sentences" in output[1]
    assert "appears in English from 1642 as anarchisme" in output[2]
    assert "*anarchism*" in output[3]
    assert output[5].startswith(
        "Anarchism is a political philosophy and movement that is sceptical"
    )
    assert "the swarm holds the same" in output[6]
    lines = _run(folder, [sys.executable, "-c", _example("import Swarm")]).splitlines()
    assert lines[0] == " that they collect from flower in the summer."
    assert "'collect'" in lines[1]
    assert lines[2] in ("healthy", "degraded")
    _run(folder, ["bash", "-c", commands[-1]])


def _example(what: str) -> str:
    (found,) = [block for kind, block in BLOCKS if kind == "python" and what in block]
    return found


def test_the_example_runs_and_prints_what_the_text_says(folder: Path) -> None:
    lines = _run(folder, [sys.executable, "-c", _example("import Brain")]).splitlines()
    assert lines[0].startswith("Bees make honey from the nectar that they collect from flower")
    assert len(lines) > 5
    assert float(lines[-1]) == pytest.approx(0.9995, abs=5e-5)
    assert "an accuracy of 0.9995" in README


def test_the_stores_example_runs(folder: Path) -> None:
    page = (ROOT / "docs" / "store.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    lines = _run(folder, [sys.executable, "-c", example]).splitlines()
    assert lines[-2:] == ["Name(concept='bee', feature='make') 1 23", "[2]"]
