"""Wrong input: one line that says what is wrong and what to do, and the right exit code."""

import os
import shlex
import subprocess
import threading
from pathlib import Path

import pytest

from giaann_p2p import Brain, ModelSpec
from giaann_p2p.errors import UsageError
from giaann_p2p.swarm.wire.link import Link
from tests.cli.conftest import GIAANN, WORDS, Run

ADDRESS = "/ip4/127.0.0.1/tcp/1/p2p/12D3KooWJzAMc6f4afnkkrUydqgNnjcg8ar3P3c2eDM8XCGn5QTQ"
LINK = str(Link(bytes(range(32)), (ADDRESS,)))


def test_no_brain_there(giaann: Run, tmp_path: Path) -> None:
    done = giaann("solo", "prompt", "Bees make", "--db", tmp_path / "none")
    assert done.returncode == 2
    assert "there is no brain in" in done.stderr
    assert "giaann solo train" in done.stderr
    assert not (tmp_path / "none").exists()


def test_no_such_text(giaann: Run, tmp_path: Path) -> None:
    done = giaann("solo", "train", tmp_path / "none.txt", "--db", tmp_path / "db", *WORDS)
    assert done.returncode == 2
    assert "none.txt: No such file or directory" in done.stderr


def test_a_directory_is_no_text(giaann: Run, tmp_path: Path) -> None:
    done = giaann("solo", "train", tmp_path, "--db", tmp_path / "db", *WORDS)
    assert done.returncode == 2
    assert f"{tmp_path} is a directory" in done.stderr


def test_another_encoding_is_refused_with_file_line_and_remedy(giaann: Run, tmp_path: Path) -> None:
    file = tmp_path / "wide.txt"
    file.write_text("Bees make honey.", encoding="utf-16")
    done = giaann("solo", "train", file, "--db", tmp_path / "db", *WORDS)
    assert done.returncode == 2
    assert f"{file}:1: the text is UTF-16" in done.stderr
    assert "iconv -f UTF-16 -t UTF-8" in done.stderr


@pytest.mark.parametrize("prompt", ["", "  "])
def test_an_empty_prompt(giaann: Run, db: Path, prompt: str) -> None:
    done = giaann("solo", "prompt", prompt, "--db", db)
    assert done.returncode == 2
    assert "the prompt is empty" in done.stderr


def test_a_brain_that_has_learned_nothing(giaann: Run, tmp_path: Path) -> None:
    with Brain.open(tmp_path / "empty", ModelSpec()):
        pass
    done = giaann("solo", "prompt", "the of and", "--db", tmp_path / "empty")
    assert done.returncode == 2
    assert "nothing was learned yet: train the model on a text first" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["prompt", "Bees", "--beam", "3y"],
        ["prompt", "Bees", "--beam", "3x" + "9" * 5000],
        ["prompt", "Bees", "--beam", "0x3"],
        ["prompt", "Bees", "--timing", "soon"],
        ["prompt", "Bees", "--max-tokens", "0"],
        ["eval", "text", "--feed", "mine"],
        ["export", "--format", "xml"],
        ["train"],
        ["nonsense"],
    ],
)
def test_wrong_usage(giaann: Run, db: Path, arguments: list[str]) -> None:
    assert giaann("solo", *arguments, "--db", db).returncode == 2


def test_no_such_device(giaann: Run, db: Path) -> None:
    done = giaann("solo", "prompt", "Bees make", "--db", db, "--device", "abacus")
    assert done.returncode == 2
    assert "no device 'abacus'" in done.stderr


def test_a_damaged_brain_is_refused_and_fsck_tells_where(
    giaann: Run, text: Path, tmp_path: Path
) -> None:
    giaann("solo", "train", text, "--db", tmp_path, *WORDS)
    giaann("solo", "compact", "--db", tmp_path)
    file = tmp_path / "snapshot-00000002"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    done = giaann("solo", "info", "--db", tmp_path)
    assert done.returncode == 1
    assert f"{file} is damaged at byte" in done.stderr
    done = giaann("solo", "fsck", "--db", tmp_path)
    assert done.returncode == 1
    assert f"{file} is damaged at byte" in done.stdout
    assert "1 problem;" in done.stdout


@pytest.mark.parametrize("command", ["info", "fsck", "compact", "export"])
def test_what_is_no_brain_is_not_made_one(giaann: Run, tmp_path: Path, command: str) -> None:
    done = giaann("solo", command, "--db", tmp_path)
    assert done.returncode == 2
    assert f"there is no brain in {tmp_path}" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_text_that_cannot_be_learned_does_not_keep_others_from_it(
    giaann: Run, text: Path, tmp_path: Path
) -> None:
    latin = tmp_path / "latin.txt"
    latin.write_bytes("The caf\u00e9 was full.".encode("latin-1"))
    late = tmp_path / "late.txt"
    late.write_bytes(b"Bees. " * (1 << 14) + "Caf\u00e9".encode("latin-1"))
    bad = [tmp_path / "none.txt", latin, late, tmp_path]
    done = giaann("solo", "train", *bad, text, "--db", tmp_path / "db", *WORDS)
    assert done.returncode == 1
    assert "learned 3 of 3 sentences" in done.stdout
    assert "none.txt: No such file or directory; continuing with the others" in done.stderr
    assert "latin.txt:1: the text looks like Latin-1" in done.stderr
    assert "late.txt:1: the text looks like Latin-1" in done.stderr
    assert f"{tmp_path} is a directory" in done.stderr
    done = giaann("solo", "train", *bad[:2], "--db", tmp_path / "other", *WORDS)
    assert (done.returncode, done.stdout) == (2, "")
    assert "none.txt: No such file" in done.stderr
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("data", [b"", b"The of.", b"\x89PNG\r\n\x1a\n\0\xe9t\xe9"])
def test_a_text_that_teaches_nothing_fails(giaann: Run, tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "nothing.txt"
    file.write_bytes(data)
    done = giaann("solo", "train", file, "--db", tmp_path / "db", *WORDS)
    assert done.returncode == 1
    assert "giaann: nothing was learned: a sentence to learn needs a noun" in done.stderr


def test_another_model_than_the_brains_is_refused(giaann: Run, text: Path, tmp_path: Path) -> None:
    giaann("solo", "train", text, "--db", tmp_path, *WORDS)
    done = giaann("solo", "train", text, "--db", tmp_path, *WORDS, "--seed-tokens", "8")
    assert done.returncode == 2
    assert "seed_tokens: 8 and 12" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["info"], ["recall", "TEXT"], ["prompt", "Bees make"]])
def test_a_pipe_that_is_closed_ends_a_command_quietly(
    db: Path, text: Path, arguments: list[str]
) -> None:
    given = [str(text) if one == "TEXT" else one for one in arguments]
    command = shlex.join([*GIAANN, "solo", *given, "--db", str(db)])
    done = subprocess.run(
        ["bash", "-c", f"{command} | true"],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.stderr == ""


def test_a_closed_pipe_ends_an_export_quietly(db: Path) -> None:
    command = shlex.join([*GIAANN, "solo", "export", "--db", str(db)])
    done = subprocess.run(
        ["bash", "-c", f"{command} | head -n 1"],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""


def test_an_empty_directory_name_is_wrong_usage(giaann: Run, text: Path) -> None:
    assert giaann("solo", "train", text, "--db", "").returncode == 2


@pytest.mark.parametrize("command", ["publish", "pull"])
def test_the_brain_of_a_command_for_swarms_may_come_from_the_environment(
    giaann: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    def join(*_: object) -> None:
        raise UsageError("joins the swarm")

    monkeypatch.setattr("giaann_p2p.cli.visiting.visiting", join)
    assert "cannot be empty" in giaann(command, "--join", LINK, "--db", "").stderr
    assert "Missing option" in giaann(command, "--join", LINK).stderr
    monkeypatch.setenv("GIAANN_DB", str(tmp_path / "none"))
    done = giaann(command, "--join", LINK)
    assert done.returncode == 2
    assert ("there is no brain in" if command == "publish" else "joins the swarm") in done.stderr


def test_a_named_pipe_is_learned_as_a_file_is(giaann: Run, text: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(text.read_bytes()))
    writer.start()
    done = giaann("solo", "train", pipe, "--db", tmp_path / "db", *WORDS)
    writer.join()
    assert (done.returncode, done.stderr) == (0, "")
    assert "learned 3 of 3 sentences" in done.stdout


def test_an_output_that_cannot_be_written_is_told(db: Path) -> None:
    command = [*GIAANN, "solo", "export", "--db", str(db)]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=500, check=False
        )
    assert done.returncode == 1
    assert done.stderr == ("giaann: standard output cannot be written: No space left on device\n")


def test_no_brain_of_an_empty_name_is_served(giaann: Run) -> None:
    done = giaann("serve", "--db", "")
    assert done.returncode == 2
    assert "a directory's name cannot be empty" in done.stderr
