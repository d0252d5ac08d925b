"""A brain of subwords at the command line: trained with a profile, then used without naming it."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

PROMPT = "Bees make honey from the nectar that they"


@pytest.fixture(scope="module")
def brain(giaann: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("subwords")
    text = where / "bees.txt"
    text.write_text(
        "Bees make honey from the nectar that they collect from flowers in the summer.\n"
        "Many poets fought in the war.\nGolden bees guard the hive against the wasps.\n"
        + "The bees make honey and they guard it in the hive, "
        * 10
    )
    done = giaann("solo", "train", text, "--db", where / "db", "--profile", "subwords")
    assert "learned 2 of 2 texts, only begun: 1 cropped (first on line 4)" in done.stdout
    return where


def test_a_prompt_goes_on_and_tells_why(giaann: Run, brain: Path) -> None:
    done = giaann("solo", "prompt", PROMPT, "--db", brain / "db", "--explain", "--max-tokens", "6")
    first, line, *_ = done.stdout.splitlines()
    assert first == PROMPT + " collect from flowers in the summer"
    assert line.split()[:2] == ["collect", "recall"]
    assert " p 1.000 " in line
    done = giaann("solo", "prompt", "zorp", "--db", brain / "db", "--json")
    answer = json.loads(done.stdout)
    assert done.returncode == 0
    assert answer["tokens"][0]["timing"] == "no evidence"
    assert 0 < answer["tokens"][0]["probability"] < 1
    assert answer["unknown"] == ["z", "orp"]


def test_eval_says_both_accuracies(giaann: Run, brain: Path) -> None:
    done = giaann("solo", "eval", brain / "bees.txt", "--db", brain / "db")
    assert " on 2 texts; " in done.stdout
    assert "; with columns given 1.0000, strict " in done.stdout
    assert "\nchoices rest on: recall " in done.stdout
    assert "bits per byte" not in done.stdout
    done = giaann("solo", "eval", brain / "bees.txt", "--db", brain / "db", "--bits")
    assert " bits per byte (given " in done.stdout
    assert "), perplexity " in done.stdout
    done = giaann("solo", "eval", brain / "bees.txt", "--db", brain / "db", "--bits", "--json")
    score = json.loads(done.stdout)
    assert 0 < score["bits_per_byte"] < 2
    assert score["tiers"]["recall"]["choices"] >= score["tiers"]["recall"]["right"] > 0
    assert score["accuracy_strict"] <= score["accuracy"] <= score["accuracy_top5"] <= 1
    done = giaann(
        "solo", "eval", brain / "bees.txt", "--db", brain / "db", "--readout", "lif-test", "--json"
    )
    score = json.loads(done.stdout)
    assert score["columns"] == "given"
    assert score["accuracy"] == score["accuracy_given"] > 0


def test_info_names_the_profile(giaann: Run, brain: Path) -> None:
    done = giaann("solo", "info", "--db", brain / "db")
    assert "profile subwords, tokeniser 446a9538" in done.stdout
    assert (
        json.loads(giaann("solo", "info", "--db", brain / "db", "--json").stdout)["spec"][
            "subwords"
        ]["sentences"]
        == 3
    )
    assert "all is well" in giaann("solo", "fsck", "--db", brain / "db").stdout
    assert "any column" in giaann("solo", "export", "--db", brain / "db").stdout


def test_another_profile_than_the_brains_is_refused(giaann: Run, brain: Path) -> None:
    done = giaann("solo", "train", brain / "bees.txt", "--db", brain / "db", "--profile", "words")
    assert done.returncode == 2
    assert "another model: profile: words and subwords" in done.stderr
    done = giaann("solo", "prompt", PROMPT, "--db", brain / "db", "--timing", "exact")
    assert done.returncode == 2
    assert "profile words" in done.stderr


def test_connections_by_distance_in_columns_are_optional(
    giaann: Run, brain: Path, tmp_path: Path
) -> None:
    """They are most of all connections, and change no answer."""
    text, usual, more = brain / "bees.txt", brain / "db", tmp_path / "db"
    giaann("solo", "train", text, "--db", more, "--column-segments", "4")
    without, with_them = (
        json.loads(giaann("solo", "info", "--db", db, "--json").stdout) for db in (usual, more)
    )
    assert [info["spec"]["column_segments"] for info in (without, with_them)] == [0, 4]
    assert without["connections"] <= 0.5 * with_them["connections"]
    assert "model      S=8, 4 column and 5" in giaann("solo", "info", "--db", more).stdout
    answers = [giaann("solo", "prompt", PROMPT, "--db", db).stdout for db in (usual, more)]
    assert answers[0] == answers[1] != ""
    done = giaann("solo", "train", text, "--db", more)  # which goes on with the brain's model
    assert "known already" in done.stdout


def test_column_segments_are_of_new_brains_of_subwords(
    giaann: Run, brain: Path, tmp_path: Path
) -> None:
    train = ("solo", "train", brain / "bees.txt", "--column-segments", "4", "--db")
    done = giaann(*train, brain / "db")
    assert (done.returncode, done.stdout) == (2, "")
    assert "has another model: column_segments: 4 and 0" in done.stderr
    done = giaann(*train, tmp_path / "db", "--profile", "words")
    assert done.returncode == 2
    assert "column segments are an option of the profile subwords" in done.stderr
    assert not (tmp_path / "db").exists()


def test_texts_are_recalled(giaann: Run, brain: Path) -> None:
    done = giaann("solo", "recall", brain / "bees.txt", "--db", brain / "db")
    assert done.stdout == "recalled 1.0000 (2 of 2 texts)\n"


def test_a_seed_that_does_not_fit_is_refused(giaann: Run, brain: Path, tmp_path: Path) -> None:
    done = giaann(
        *("solo", "train", brain / "bees.txt", "--db", tmp_path / "db"),
        *("--profile", "subwords", "--seed-tokens", "160"),
    )
    assert done.returncode == 2
    assert "max_tokens must be more than seed_tokens" in done.stderr
