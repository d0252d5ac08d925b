"""`solo import` and `solo export --format giaannpy` at the command line."""

import json
import pickle
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.helpers import DATA, giaannpy_database


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return giaannpy_database(tmp_path_factory.mktemp("giaannpy"))


@pytest.mark.slow
def test_a_database_goes_in_answers_and_comes_out(
    giaann: Run, database: Path, tmp_path: Path
) -> None:
    db, out, other = tmp_path / "db", tmp_path / "out", tmp_path / "other"
    done = giaann("solo", "import", database, "--db", db)
    assert done.returncode == 0
    assert done.stdout == f"{database}: added 48 columns, 247 neurons, 5,527 connections\n"
    assert "2,768 strengths by distance in columns are known to the nearest 2^-16" in done.stderr
    assert "each flag counts once" in done.stderr
    done = giaann("solo", "import", database, "--db", db)
    assert (done.stdout, done.stderr) == (f"{database}: known already; nothing was added\n", "")
    info = giaann("solo", "info", "--db", db)
    assert f"{database} (a database of GIAANNpy)" in info.stdout
    answer = giaann("solo", "prompt", "Anarchism is a political", "--db", db, "--max-tokens", "2")
    assert answer.stdout == "Anarchism is a political philosophy and\n"

    done = giaann("solo", "export", "--db", db, "--format", "giaannpy", "--to", out)
    assert done.stdout == f"{out}: wrote 48 columns, 247 neurons, 5,527 connections\n"
    again = giaann("solo", "import", out, "--db", other, "--json")
    assert json.loads(again.stdout) == {
        "name": str(out), "known": False, "columns": 48, "neurons": 247, "connections": 5527,
        "left_out": 0, "nearest": 0, "rounded": 0, "flags_only": False, "unknown": 0,
    }  # fmt: skip
    assert again.stderr == ""
    digests = [
        json.loads(giaann("solo", "info", "--db", one, "--json").stdout)["digest"]
        for one in (db, other)
    ]
    assert digests[0] == digests[1]


@pytest.mark.parametrize(
    ("model", "connections", "segments", "any_column"),
    [("all", 6895, 4, True), ("reference", 5527, 4, False), ("recommended", 2672, 0, True)],
)
def test_models_of_a_new_brain(
    giaann: Run, database: Path, tmp_path: Path, model: str, connections: int, segments: int,
    any_column: bool,
) -> None:  # fmt: skip
    done = giaann("solo", "import", database, "--db", tmp_path, "--model", model)
    assert ("4,223 connections by distance in columns were left out" in done.stderr) is not segments
    info = json.loads(giaann("solo", "info", "--db", tmp_path, "--json").stdout)
    spec = info["spec"]
    assert info["connections"] == connections
    assert (spec["column_segments"], spec["subwords"]["any_column"]) == (segments, any_column)
    other = "all" if model != "all" else "reference"
    done = giaann("solo", "import", database, "--db", tmp_path, "--model", other)
    assert done.returncode == 2
    assert "another model" in done.stderr


def test_a_brain_without_what_prompts_need_says_how_to_make_one_with_it(
    giaann: Run, database: Path, tmp_path: Path
) -> None:
    kept, out, new = tmp_path / "kept", tmp_path / "out", tmp_path / "new"
    giaann("solo", "import", database, "--db", kept, "--model", "reference")
    prompt = ("solo", "prompt", "Anarchism is a political", "--max-tokens", "2", "--db")
    refused = giaann(*prompt, kept)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "solo export --format giaannpy --to FOLDER" in refused.stderr
    assert "solo import FOLDER --db NEW --model all" in refused.stderr
    giaann("solo", "export", "--db", kept, "--format", "giaannpy", "--to", out)
    giaann("solo", "import", out, "--db", new, "--model", "all")
    assert giaann(*prompt, new).stdout == "Anarchism is a political philosophy and\n"
    refused = giaann("solo", "eval", DATA / "quick.txt", "--db", kept)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "use the read-out lif-test" in refused.stderr


def test_what_cannot_be_imported_leaves_no_brain(
    giaann: Run, database: Path, tmp_path: Path, db: Path
) -> None:
    new = tmp_path / "db"
    done = giaann("solo", "import", tmp_path, "--db", new)
    assert done.returncode == 2
    assert "is no database of GIAANNpy: it has no folder observedColumns" in done.stderr
    (tmp_path / "bad" / "observedColumns").mkdir(parents=True)
    (tmp_path / "bad" / "conceptColumnsDict.pkl").write_bytes(pickle.dumps({"run": print}))
    done = giaann("solo", "import", tmp_path / "bad", "--db", new)
    assert done.returncode == 1
    assert "bad/conceptColumnsDict.pkl asks for code to be run" in done.stderr
    assert not new.exists()
    done = giaann("solo", "import", database, "--db", db)
    assert done.returncode == 2
    assert "databases of GIAANNpy hold brains of the profile subwords" in done.stderr


@pytest.mark.parametrize("options", [["--format", "giaannpy"], ["--to", "out"]])
def test_the_format_and_its_folder_need_each_other(
    giaann: Run, db: Path, options: list[str]
) -> None:
    done = giaann("solo", "export", "--db", db, *options)
    assert done.returncode == 2
    assert "need each other" in done.stderr
