"""`giaann status` and `giaann fsck`, as a user of a swarm of real processes runs them."""

import json
import os
import pty
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from giaann_p2p.swarm.wire.link import Link
from tests.cli.conftest import GIAANN, WORDS, Run
from tests.cli.living import SHARDS, Running

HEAD = "peer role state ready syncing owns used of reads/s writes/s"
SWARM = "kntjcgdvmvcstxwyzwhfjbrhfwzhci2hwxinfzz5xel3n55xkkfq"
UP, CURSOR = "\x1b[1A", "\x1b[?25h"
"""What moves a terminal's cursor up a line, and what shows it again."""
NOBODY = "12D3KooWCocgU7xjjKSfjcJvxnTj8ChMyRgLBQ7AAYK2GBf5X1Tn"


def test_status_of_a_healthy_swarm(giaann: Run, swarm: Running) -> None:
    done = giaann("status", "--join", swarm.link)
    assert (done.returncode, done.stderr) == (0, "")
    head, *rows, empty, verdict = [line.rstrip() for line in done.stdout.splitlines()]
    assert " ".join(head.split()) == HEAD
    assert [row.split()[1:6] for row in rows] == [["storage", "active", "4", "0", "4"]] * 2
    assert all("1.0 GiB" in row for row in rows)
    assert not empty
    assert verdict == (
        "bees: healthy. 2 storage peers; 4 shards, 2 replicas of each wanted, 2 or more ready"
    )


def test_status_is_drawn_again_on_a_terminal_until_ctrl_c(swarm: Running) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        # its controlling terminal, which makes a signal of Ctrl-C
        ["setsid", "--ctty", *GIAANN, "status", "--watch", "--join", swarm.link],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "40"},
    )
    os.close(theirs)
    seen, pressed = "", False
    while True:
        try:
            seen += os.read(ours, 1 << 16).decode(errors="replace")
        except OSError:  # the command has ended
            break
        if not pressed and seen.count("bees: healthy.") == 2:
            os.write(ours, b"\x03")
            pressed = True
    os.close(ours)
    assert process.wait() == 130
    first, again = seen.split("bees: healthy.")[:2]
    assert UP in again  # over the table before, not below it
    for drawn in first, again:
        assert len(re.findall(r"storage +active", drawn)) == 2
    assert "giaann: interrupted" in seen
    assert seen.rindex(CURSOR) > seen.rindex("bees: healthy.")
    assert "Traceback" not in seen


def test_status_for_programs(giaann: Run, swarm: Running) -> None:
    done = giaann("status", "--json", "--join", swarm.link)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["verdict"] == "healthy"
    assert [(one["role"], one["ready"]) for one in found["peers"]] == [("storage", 4)] * 2
    assert len(found["peers"][0]["peer"]) == 52
    assert found["health"] == {"least": 2, "mean": 2.0, "under": 0, "lost": 0, "unsettled": 0}


def test_a_map_of_the_shards(giaann: Run, swarm: Running, tmp_path: Path) -> None:
    file = tmp_path / "map.svg"
    done = giaann("swarm", "map", "--join", swarm.link, "--picture", file)
    assert (done.returncode, done.stderr) == (0, "")
    head, row, summary = [line.rstrip() for line in done.stdout.splitlines()]
    assert " ".join(head.split()) == "ready replica 1 replica 2 shards"
    found = json.loads(giaann("swarm", "map", "--json", "--join", swarm.link).stdout)
    names = sorted(one["name"] for one in found["peers"])
    assert row.split() == ["2", "of", "2", *names, "0-3"]
    assert found["shards"] == [[[name, "ready"] for name in names]] * SHARDS
    assert summary == (
        "bees: 2 storage peers; 4 shards, 2 replicas of each wanted, and all are ready"
    )
    assert all(f">{name}<" in file.read_text() for name in names)


def test_a_swarm_with_too_few_peers_is_told_what_to_do(swarm: Running) -> None:
    assert (swarm.alone.returncode, swarm.alone.stderr) == (1, "")
    assert "bees: degraded. 1 storage peer; 4 shards" in swarm.alone.stdout
    assert "lacking replicas: 4 shards" in swarm.alone.stdout
    advice = "Start 1 more storage peer: giaann swarm add storage --dir /"
    assert advice in swarm.alone.stdout
    assert (swarm.alone_fsck.returncode, swarm.alone_fsck.stderr) == (0, "")
    assert "4 shards with too few replicas: 0, 1, 2, 3" in swarm.alone_fsck.stdout


def test_fsck_finds_replicas_equal_and_equal_to_a_solo_database(
    giaann: Run, swarm: Running, db: Path
) -> None:
    done = giaann("fsck", "--join", swarm.link, "--against", db)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert re.fullmatch(r"4 shards, \d+ rows, \d+ connections", lines[0])
    assert lines[1].removeprefix("digest ") == lines[2].removeprefix("solo   ")
    assert "the swarm and the solo database agree" in lines
    told = giaann("solo", "fsck", "--db", db).stdout
    assert lines[1] in told


def test_fsck_for_programs(giaann: Run, swarm: Running, db: Path) -> None:
    done = giaann("fsck", "--json", "--join", swarm.link, "--against", db)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["agrees"] is found["equal"] is True
    assert found["digest"] == found["solo"]
    assert (found["shards"], found["silent"], found["damaged"]) == (SHARDS, [], [])


def test_fsck_tells_that_a_database_is_another(giaann: Run, swarm: Running, tmp_path: Path) -> None:
    other = tmp_path / "other"
    text = "Golden bees guard the hive against the wasps that come for the honey in autumn.\n"
    assert giaann("solo", "train", "-", "--db", other, *WORDS, stdin=text).returncode == 0
    done = giaann("fsck", "--join", swarm.link, "--against", other)
    assert (done.returncode, done.stderr) == (1, "")
    assert "the swarm and the solo database differ" in done.stdout.splitlines()
    found = json.loads(giaann("fsck", "--json", "--join", swarm.link, "--against", other).stdout)
    assert (found["agrees"], found["equal"]) == (True, False)


def test_a_database_that_is_not_there(giaann: Run, swarm: Running, tmp_path: Path) -> None:
    done = giaann("fsck", "--join", swarm.link, "--against", tmp_path / "none")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"giaann: there is no brain in {tmp_path / 'none'}; make one")


@pytest.mark.parametrize("command", ["status", "fsck"])
@pytest.mark.parametrize(
    ("link", "code", "complaint"),
    [
        ("https://example.org", 2, "a join link begins with giaann://, not with 'https://e'"),
        ("giaann://short/ip4/127.0.0.1/tcp/1/p2p/x", 2, "the join link's swarm"),
        (f"giaann://{SWARM}", 2, "the join link is cut off"),
        (f"giaann://{SWARM}/ip4/127.0.0.1/tcp/1", 2, "the join link is cut off"),
        (
            f"giaann://{SWARM}/ip4/127.0.0.1/tcp/1/p2p/12D3KooWCocgU7xj",
            2,
            "the join link is cut off after 'KooWCocgU7xj': copy all of it",
        ),
        (
            f"giaann://{SWARM}/ip4/127.0.0.1/tcp/1/p2p/{NOBODY}",
            1,
            "`giaann doctor --join LINK` finds out why",
        ),
    ],
)
def test_links_that_lead_nowhere(
    giaann: Run, command: str, link: str, code: int, complaint: str
) -> None:
    done = giaann(command, "--join", link)
    assert (done.returncode, done.stdout) == (code, "")
    assert complaint in done.stderr
    assert done.stderr.startswith("giaann: ")
    assert done.stderr.count("\n") == 1


def test_another_swarms_link_at_this_ones_address(giaann: Run, swarm: Running) -> None:
    link = Link.read(swarm.link)
    done = giaann("status", "--join", str(Link(b"x" * 32, link.addresses)))
    assert (done.returncode, done.stdout) == (1, "")
    assert "this is another swarm's manifest" in done.stderr


@pytest.mark.slow
def test_a_status_that_is_watched_by_a_pipe_is_written_as_it_comes(swarm: Running) -> None:
    command = shlex.join([*GIAANN, "status", "--watch", "--join", swarm.link])
    done = subprocess.run(
        ["bash", "-c", f"{command} | head -n 9"],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.stderr == ""
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert lines[0] == lines[5] == HEAD
    assert lines[4].startswith("bees: healthy. ")


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["status"],  # a table, by rich
        ["fsck"],  # lines
        ["prompt", "Bees make honey", "--local", "--stream"],  # pieces of a line
    ],
    ids=" ".join,
)
def test_a_pipe_that_is_closed_ends_a_command_quietly(swarm: Running, arguments: list[str]) -> None:
    command = shlex.join([*GIAANN, *arguments, "--join", swarm.link])
    done = subprocess.run(
        ["bash", "-c", f"{command} | true"],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("", "")


def test_what_cannot_go_together(giaann: Run, swarm: Running) -> None:
    done = giaann("status", "--json", "--watch", "--join", swarm.link)
    assert done.returncode == 2
    assert "give one of them" in done.stderr
    assert giaann("status").returncode == 2
