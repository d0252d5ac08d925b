"""Ctrl-C on a real process: it stops in good order, and the same command goes on."""

import signal
import subprocess
import time
from pathlib import Path

import pytest

from giaann_p2p import Brain
from giaann_p2p.solo import database
from tests.cli.conftest import GIAANN

SENTENCE = "Bee {0} makes honey from the nectar that it collects from flower {0} in summer {0}.\n"


@pytest.mark.timeout(120)
def test_ctrl_c_saves_what_was_learned_and_the_same_command_goes_on(tmp_path: Path) -> None:
    text, db = tmp_path / "bees.txt", tmp_path / "db"
    text.write_text("".join(SENTENCE.format(i) for i in range(1280)))
    command = [*GIAANN, "solo", "train", str(text), "--db", str(db)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (db / "lock").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "(interrupted)" in out
    assert "the same command goes on from there" in err
    assert "Traceback" not in err
    (job,) = database.load(db).jobs.values()
    assert (job.chunks, job.complete) == (1, False)

    rest = Brain()
    rest.train(text)
    with Brain.open(db) as brain:
        (report,) = brain.train(text)
        assert report.chunks == 19
        assert brain.knowledge.digest() == rest.knowledge.digest()
