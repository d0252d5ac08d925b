"""Export: every connection, in lines that no text can break."""

import gzip
import json
import os
import subprocess
from pathlib import Path

from tests.cli.conftest import GIAANN, WORDS, Run

DATA = Path(__file__).parent.parent


def test_the_export_of_a_golden_text_is_the_golden(giaann: Run, tmp_path: Path) -> None:
    giaann("solo", "train", DATA / "data" / "quick.txt", "--db", tmp_path, *WORDS)
    ours = {
        tuple(line.split("\t")[:6]): float(line.split("\t")[6]) for line in _tsv(giaann, tmp_path)
    }
    golden = gzip.decompress((DATA / "goldens/quick12/connections.tsv.gz").read_bytes()).decode()
    theirs = {
        tuple(line.split("\t")[:6]): float(line.split("\t")[6]) for line in golden.splitlines()
    }
    assert len(ours) == 5714
    assert ours.keys() == theirs.keys()
    assert max(abs(ours[key] - theirs[key]) for key in ours) < 2e-4


def _tsv(giaann: Run, db: Path) -> list[str]:
    done = giaann("solo", "export", "--db", db)
    assert done.returncode == 0
    return done.stdout.split("\n")[:-1]


def test_text_that_would_break_the_table_is_escaped(giaann: Run, tmp_path: Path) -> None:
    file = tmp_path / "odd.txt"
    file.write_text(
        "The star * of the footnote\tstands \\ in the middle of the sentence about the river.\n"
    )
    giaann("solo", "train", file, "--db", tmp_path, *WORDS)
    rows = [line.split("\t") for line in _tsv(giaann, tmp_path)]
    assert {len(row) for row in rows} == {7}
    assert {"*", r"\*", r"\t", r"\\"} <= {field for row in rows for field in row[:4]}


def test_an_export_loses_no_letter_wherever_the_user_lives(giaann: Run, tmp_path: Path) -> None:
    file = tmp_path / "wasps.txt"
    file.write_text("The wasps of the Säntis guard the hive of the queen against bees in summer.\n")
    giaann("solo", "train", file, "--db", tmp_path, *WORDS)
    done = subprocess.run(
        [*GIAANN, "solo", "export", "--db", tmp_path],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode().splitlines() == _tsv(giaann, tmp_path)
    assert "säntis" in done.stdout.decode().lower()


def test_json_lines_hold_the_exact_strength(giaann: Run, tmp_path: Path, db: Path) -> None:
    done = giaann("solo", "export", "--db", db, "--format", "jsonl")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == len(_tsv(giaann, db))
    assert all(abs(row["units"] / 65536 - row["strength"]) <= 5e-5 for row in rows)
    assert any(row["source_feature"] is None for row in rows)


def test_a_header_names_the_fields(giaann: Run, db: Path) -> None:
    bare = giaann("solo", "export", "--db", db).stdout.split("\n")
    headed = giaann("solo", "export", "--header", "--db", db).stdout.split("\n")
    assert headed[1:] == bare
    assert headed[0].split("\t")[::3] == ["source_concept", "target_feature", "strength"]
    assert len(headed[0].split("\t")) == len(bare[0].split("\t"))
    assert giaann("solo", "export", "--header", "--format", "jsonl", "--db", db).returncode == 2
