"""`giaann publish` and `giaann pull`: a brain goes into a swarm, and comes home with its digest."""

import json
from pathlib import Path

import pytest

from giaann_p2p.local.swarm import LocalSwarm
from tests.cli.conftest import TEXT, Run

pytestmark = pytest.mark.slow  # two swarms are started for them


@pytest.mark.parametrize(("profile", "segments"), [("words", 0), ("subwords", 0), ("subwords", 4)])
def test_a_published_brain_is_pulled_with_the_same_digest(
    giaann: Run, tmp_path: Path, profile: str, segments: int
) -> None:
    (tmp_path / "text").write_text(TEXT)
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    model = ["--profile", profile, *(["--column-segments", str(segments)] if segments else [])]
    done = giaann("solo", "train", tmp_path / "text", "--db", mine, *model)
    assert done.returncode == 0, done.stderr
    with LocalSwarm(
        profile=profile, column_segments=segments, storages=3, computes=0, shards=4, grace=1.0
    ) as swarm:
        done = giaann("publish", "--db", mine, "--join", swarm.link, "--json")
        assert done.returncode == 0, done.stderr
        published = json.loads(done.stdout)
        assert published["rows"] > 0
        again = giaann("publish", "--db", mine, "--join", swarm.link, "--json")
        assert json.loads(again.stdout)["pushed"] == 0  # it counts once
        done = giaann("pull", "--db", theirs, "--join", swarm.link, "--json")
        assert done.returncode == 0, done.stderr
        pulled = json.loads(done.stdout)
    one, other = (
        json.loads(giaann("solo", "info", "--db", db, "--json").stdout) for db in (mine, theirs)
    )
    assert one["spec"] == other["spec"]
    assert one["digest"] == other["digest"] == pulled["digest"]
    assert one["connections"] == other["connections"] == published["connections"] > 0
