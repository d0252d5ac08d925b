"""Ctrl-C on a real process: it stops in good order, and the same command goes on."""

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from giaann_p2p import Brain
from giaann_p2p.model.spec import ModelSpec
from tests.cli.conftest import GIAANN, WORDS

SENTENCE = "Bee {0} makes honey from the nectar that it collects from flower {0} in summer {0}.\n"


def interrupted(
    command: list[str], when: Callable[[str], bool], **options: int
) -> tuple[int, str, str]:
    """Run on a terminal, send Ctrl-C once the terminal shows something; exit code and outputs."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*GIAANN, *command], stdout=subprocess.PIPE, stderr=theirs, text=True, **options
    )
    os.close(theirs)
    seen, sent = "", False
    while True:
        try:
            seen += os.read(ours, 1 << 16).decode()
        except OSError:  # it closed the terminal
            break
        if not sent and when(seen):
            process.send_signal(signal.SIGINT)
            sent = True
    os.close(ours)
    out, _ = process.communicate()
    assert "Traceback" not in seen + out
    return process.returncode, out, seen


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_saves_what_was_learned_and_the_same_command_goes_on(
    tmp_path: Path, workers: int
) -> None:
    text, db = tmp_path / "bees.txt", tmp_path / "db"
    text.write_text("".join(SENTENCE.format(i) for i in range(5120)))
    code, out, err = interrupted(
        ["solo", "train", str(text), "--db", str(db), "--workers", str(workers), *WORDS],
        lambda seen: "sentences" in seen,
    )
    assert code == 130
    assert "(interrupted)" in out
    assert "the same command continues from there" in err
    with Brain.open(db, readonly=True) as brain:
        (job,) = brain.info().texts
    assert 1 <= job.chunks < 80
    assert not job.complete

    rest = Brain(ModelSpec())
    rest.train(text)
    with Brain.open(db) as brain:
        (report,) = brain.train(text)
        assert report.chunks == 80 - job.chunks
        assert brain.digest() == rest.digest()


def test_ctrl_c_ends_at_once_what_waits_for_its_input(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    command = ["solo", "train", "-", "--db", str(tmp_path / "db"), *WORDS]
    code, out, err = interrupted(command, lambda seen: "learning" in seen, stdin=reading)
    os.close(reading)
    os.close(writing)
    assert (code, out) == (130, "")
    assert "giaann: interrupted" in err


ASKING = """
import asyncio
from giaann_p2p.cli.reshard import _ask
from giaann_p2p.terminal import ctrl_c_told
with ctrl_c_told():
    asyncio.run(_ask())
"""


def test_ctrl_c_ends_at_once_what_waits_for_an_answer() -> None:
    """A thread that read the answer would be waited for."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        ["setsid", "--ctty", sys.executable, "-c", ASKING],
        stdin=theirs,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(theirs)
    assert process.stderr is not None
    seen = ""
    while "Go on?" not in seen:
        seen += (more := process.stderr.read(1))
        assert more
    os.write(ours, b"\x03")
    try:
        _, seen = process.communicate(timeout=60)
    finally:
        process.kill()
        os.close(ours)
    assert process.returncode == -signal.SIGINT  # as no command of typer's catches it here
    assert "giaann: interrupted" in seen


def test_a_worker_that_dies_is_told_and_what_was_learned_is_kept(tmp_path: Path) -> None:
    text, db = tmp_path / "bees.txt", tmp_path / "db"
    text.write_text("".join(SENTENCE.format(i) for i in range(20000)))
    command = [*GIAANN, "solo", "train", str(text), "--db", str(db), "--workers", "2", *WORDS]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (workers := _workers(process.pid)):
        assert process.poll() is None
        time.sleep(0.05)
    os.kill(workers[0], signal.SIGKILL)
    out, err = process.communicate(timeout=500)
    assert process.returncode == 1
    assert "a parsing process died" in err
    assert "Traceback" not in out + err


def _workers(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [
        int(child)
        for child in children
        if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]
