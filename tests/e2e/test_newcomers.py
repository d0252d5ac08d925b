"""Three newcomers take all they can and vanish: what the five others had learned is there again.

More newcomers, moments and rounds:

    python -m tests.e2e.newcomers --newcomers 3 5 10 --kept memory disk --rounds 5
"""

import os
import subprocess
import sys

import pytest

NEWCOMERS = os.environ.get("GIAANN_NEWCOMERS", "3")
WITHIN = 700.0

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(WITHIN + 60)]


def test_what_was_learned_survives_newcomers_that_take_all_and_vanish() -> None:
    command = [sys.executable, "-m", "tests.e2e.newcomers", "--newcomers", NEWCOMERS]
    done = subprocess.run(
        [*command, "--memory-only", "--vanish-after", "45"],
        check=False,
        capture_output=True,
        text=True,
        timeout=WITHIN,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
