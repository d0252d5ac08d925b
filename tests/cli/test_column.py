"""`giaann column`, as a user of a swarm of real processes runs it."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.living import Running
from tests.cli.test_interrupt import interrupted

pytestmark = pytest.mark.slow  # a swarm is started and taught for them


def test_a_column_of_the_swarm(giaann: Run, swarm: Running) -> None:
    done = giaann("column", "--join", swarm.link, "bee", "--words", "3", "--leads", "2")
    assert (done.returncode, done.stderr) == (0, "")
    head, *rows, count = done.stdout.splitlines()
    assert head.split() == ["word", "occurred", "connections", "leads", "to"]
    assert len(rows) == 3
    occurred = [int(row.split()[1]) for row in rows]
    assert occurred == sorted(occurred, reverse=True)
    assert any(row.startswith("*bee*") for row in rows)
    assert count.startswith("bee: ")
    assert count.endswith("words, 3 of them shown")


def test_a_column_for_programs(giaann: Run, swarm: Running) -> None:
    link = swarm.link
    done = giaann("column", "--join", link, "Spanish Civil War", "--words", "100", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["concept"] == "spanish_civil_war"
    (noun,) = [word for word in found["words"] if word["feature"] is None]
    assert len(found["words"]) == found["size"]
    assert noun["occurrences"] > 0
    strengths = [lead["strength"] for lead in noun["leads"]]
    assert strengths == sorted(strengths, reverse=True)
    assert all(lead["concept"] for lead in noun["leads"])


def test_a_column_that_is_put_to_the_vote(giaann: Run, swarm: Running) -> None:
    found = [
        giaann("column", "--join", swarm.link, "bee", "--json", *options)
        for options in ([], ["--verify"])
    ]
    assert [(done.returncode, done.stderr) for done in found] == [(0, "")] * 2
    one, other = (json.loads(done.stdout) for done in found)
    assert one == other
    assert (one["lies"], one["undecided"]) == ([], 0)


@pytest.mark.parametrize("json", [[], ["--json"]])
def test_who_watches_sees_that_it_joins(swarm: Running, json: list[str]) -> None:
    begun = ["column", "--join", swarm.link, "bee", *json]
    code, out, seen = interrupted(begun, lambda seen: False)
    assert code == 0
    assert "bee" in out
    assert "joining" not in out
    if json:
        assert seen == ""
    else:
        assert "joining the swarm ..." in seen
        assert seen.endswith("\x1b[2K")  # and the line is gone


def test_a_picture_of_a_column(giaann: Run, swarm: Running, tmp_path: Path) -> None:
    file = tmp_path / "bee.svg"
    done = giaann("column", "--join", swarm.link, "bee", "--picture", file)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == giaann("column", "--join", swarm.link, "bee").stdout
    assert ">*bee*<" in file.read_text()
    other = tmp_path / "zorp.svg"
    assert giaann("column", "--join", swarm.link, "zorp", "--picture", other).returncode == 3
    assert not other.exists()


def test_a_noun_that_nobody_has_learned(giaann: Run, swarm: Running) -> None:
    done = giaann("column", "--join", swarm.link, "zorp")
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout == "zorp: the swarm has not learned this noun; try another form of it\n"
