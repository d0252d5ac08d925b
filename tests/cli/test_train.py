"""`giaann train`, as somebody runs it who has texts for a swarm of real processes."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from giaann_p2p.local.swarm import LocalSwarm
from tests.cli.conftest import TEXT, WORDS, Run
from tests.cli.living import Running
from tests.cli.test_interrupt import SENTENCE, interrupted
from tests.unit.peers.helpers import LINK


@pytest.fixture(scope="module")
def link() -> Iterator[str]:
    """A swarm that learns, in larger chunks than a brain does."""
    with LocalSwarm(
        name="school",
        profile="words",
        shards=4,
        chunk=100,
        replicas=2,
        storages=2,
        computes=1,
        grace=1.0,
    ) as one:
        one.wait_ready()
        yield one.link


@pytest.mark.slow
def test_what_a_swarm_learns_is_what_one_machine_learns(
    giaann: Run, link: str, tmp_path: Path
) -> None:
    folder = tmp_path / "texts"
    (folder / "more").mkdir(parents=True)
    (folder / "b.txt").write_text(TEXT)
    (folder / "more" / "a.txt").write_text(TEXT.replace("honey", "wax"))
    (folder / "image.png").write_bytes(b"\x89PNG")
    done = giaann("train", "--join", link, folder)
    assert (done.returncode, done.stderr) == (0, "")
    first, second = done.stdout.splitlines()
    assert re.fullmatch(
        rf"{folder}/b.txt: learned 3 of 3 sentences; [\d,]+ sentences/s, 0.0 MB pushed", first
    )
    assert second.startswith(f"{folder}/more/a.txt: learned 3 of 3 sentences")
    again = giaann("train", "--join", link, folder / "b.txt", "--policy", "random")
    assert again.stdout == (f"{folder}/b.txt: known already (1 chunk); --epochs learns it again\n")
    text = "Go. Here the busy wasps of the old hive make no honey in the long winter of the year."
    piped = giaann("train", "--join", link, "-", "--epochs", "2", "--json", stdin=text)
    assert (piped.returncode, piped.stderr) == (0, "")
    told = [json.loads(line) for line in piped.stdout.splitlines()]
    assert [(one["name"], one["epoch"], one["chunks"]) for one in told] == [
        ("-", 1, 1),
        ("-", 2, 1),
    ]
    assert told[0]["skips"] == {"too short": {"count": 1, "first_line": 1}}
    assert (told[0]["given_up"], told[0]["complete"], told[0]["known"]) == ({}, True, False)
    assert told[0]["pushed"] > 0

    db = tmp_path / "db"
    for file in (folder / "b.txt", folder / "more" / "a.txt"):
        assert giaann("solo", "train", file, "--db", db, *WORDS).returncode == 0
    assert (
        giaann("solo", "train", "-", "--epochs", "2", "--db", db, *WORDS, stdin=text).returncode
        == 0
    )
    done = giaann("fsck", "--join", link, "--against", db)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


@pytest.mark.slow
def test_a_brain_taken_home_knows_what_the_swarm_learned(
    giaann: Run, link: str, tmp_path: Path
) -> None:
    text, home, db = tmp_path / "bees.txt", tmp_path / "home", tmp_path / "db"
    text.write_text("".join(SENTENCE.format(i) for i in range(250)))
    told = json.loads(giaann("train", "--join", link, text, "--json").stdout)
    assert (told["chunks"], told["sentences"], told["complete"]) == (3, 250, True)
    assert giaann("pull", "--join", link, "--db", home).returncode == 0
    again = giaann("solo", "train", text, "--db", home)
    assert again.stdout == f"{text}: known already (3 chunks); --epochs learns it again\n"
    assert giaann("fsck", "--join", link, "--against", home).returncode == 0
    known = giaann("solo", "train", text, "--db", db, *WORDS)  # in chunks of 64
    assert "250 of 250 sentences" in known.stdout


@pytest.mark.slow
def test_ctrl_c_stops_it_and_the_same_command_goes_on(
    giaann: Run, link: str, tmp_path: Path
) -> None:
    text = tmp_path / "bees.txt"
    text.write_text("".join(SENTENCE.format(i) for i in range(3200)))
    command = ["train", "--join", link, str(text), "--batch", "4"]
    code, out, err = interrupted(command, lambda seen: " at work" in seen)
    assert code == 130
    assert "(interrupted)" in out
    assert "stopping after this chunk" in err
    assert re.search(r"interrupted; [0-9,]+ sentences learned, and kept: the same command", err)
    done = giaann(*command, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told["chunks"] > 0
    assert told["chunks"] + told["chunks_known"] == 32


@pytest.mark.slow
def test_without_compute_peers_it_says_what_to_do(giaann: Run, swarm: Running, text: Path) -> None:
    done = giaann("train", "--join", swarm.link, text, "--patience", "3")
    assert (done.returncode, done.stdout) == (1, "")
    waiting, why = done.stderr.splitlines()
    assert waiting.startswith("giaann: waiting for compute peers: no compute peer")
    assert "no compute peer is in the swarm; start one" in why
    assert "giaann swarm add compute --dir /" in why


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing.txt"], "missing.txt: No such file or directory"),
        (["."], "contains no *.txt file"),
        (["-", "--batch", "0"], "--batch"),
        (["-", "--batch", "4097"], "--batch"),
        (["-", "--policy", "best"], "--policy"),
        ([], "Missing argument"),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_done(
    giaann: Run,
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = giaann("train", "--join", LINK, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr


def test_a_link_that_leads_nowhere_is_told(giaann: Run, text: Path) -> None:
    done = giaann("train", "--join", "giaann://nowhere", text)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("giaann: ")
