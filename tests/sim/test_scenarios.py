"""Scripts play as they are written; GIAANN_REWRITE=1 writes what comes of them into them."""

import os
from pathlib import Path

import pytest

from giaann_p2p.sim.scenario import expects, play

SCRIPTS = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))
REWRITE = bool(os.environ.get("GIAANN_REWRITE"))


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_plays_as_it_is_written(script: Path) -> None:
    text = script.read_text()
    played = play(text)
    if REWRITE:
        script.write_text(played)
    else:
        assert expects(text)
        assert played == text


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_every_script_ends_with_all_promises_kept(script: Path) -> None:
    assert script.read_text().endswith("check\n> all promises kept\n")
