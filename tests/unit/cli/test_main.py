"""The command's entry."""

import subprocess
import sys

import pytest

_LOADED = "import sys; import giaann_p2p.cli.main; print(*sorted(sys.modules))"


@pytest.mark.parametrize("slow", ["torch", "spacy", "hivemind"])
def test_help_waits_for_nothing_that_takes_long_to_load(slow: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LOADED], capture_output=True, text=True, timeout=60, check=True
    )
    assert slow not in done.stdout.split()
