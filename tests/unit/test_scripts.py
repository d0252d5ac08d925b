"""What `scripts/test` runs, by what a Python that runs nothing is told."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def made(venv: Path, extras: str) -> Path:
    """Pretend that an environment has been made; return its Python, which says how it is run."""
    parts = (ROOT / name for name in ("pyproject.toml", "constraints.txt"))
    data = b"".join(part.read_bytes() for part in parts)
    stamp = subprocess.run(["cksum"], input=data, capture_output=True, check=True).stdout
    (venv / f".giaann-{extras}").write_bytes(stamp)
    (venv / "bin").mkdir(exist_ok=True)
    python = venv / "bin" / "python"
    python.write_text('#!/bin/sh\necho "$@"\n')
    python.chmod(0o755)
    return python


def ran(venv: Path, *arguments: str) -> list[str]:
    """Return the arguments with which Python is run, a line for each run."""
    made(venv, "[dev]")  # so nothing is installed
    command = [ROOT / "scripts" / "test", *arguments]
    env = os.environ | {"GIAANN_VENV": str(venv)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.splitlines()


def test_all_of_the_tests_end_with_the_page_in_a_browser(tmp_path: Path) -> None:
    everything, page = ran(tmp_path, "--all")
    assert everything.startswith("-m pytest -n ")
    assert page == "-m pytest -m e2e tests/e2e/test_page.py tests/e2e/test_page_live.py"


@pytest.mark.parametrize("option", ["--all", "--rest", "--coverage"])
def test_a_choice_of_tests_is_run_alone(tmp_path: Path, option: str) -> None:
    (run,) = ran(tmp_path, option, "tests/sim")
    assert run.endswith("tests/sim")
    assert "test_page" not in run


def test_all_cores_are_used_whatever_one_process_may_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    freely = ran(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert ran(tmp_path) == freely


@pytest.mark.parametrize(
    ("there", "wanted", "installs"),
    [("[dev]", "", False), ("[dev]", "[dev]", False), ("", "", False), ("", "[dev]", True)],
)
def test_an_environment_with_more_extras_than_wanted_is_enough(
    there: str, wanted: str, installs: bool, tmp_path: Path
) -> None:
    python = made(tmp_path, there)
    env = os.environ | {"GIAANN_VENV": str(tmp_path), "GIAANN_PYTHON": str(python)}
    command = ["bash", "-c", f"source scripts/environment; environment '{wanted}'"]
    done = subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, check=True, timeout=60
    )
    assert ("-m pip install" in done.stdout) is installs
