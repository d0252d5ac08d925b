"""Each sub-command on a small brain: what it prints, and its exit code."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import TEXT, WORDS, Run

PROMPT = "Bees make honey from the nectar that they"
REST = " collect from flower in the summer."


def test_help_is_there_for_every_command(giaann: Run) -> None:
    for command in (
        [],
        ["solo"],
        *(
            ["solo", name]
            for name in ("train", "prompt", "eval", "recall", "export", "fsck", "compact", "info")
        ),
    ):
        done = giaann(*command, "--help")
        assert done.returncode == 0
        assert "Usage" in done.stdout
    assert "130 interrupted" in giaann("--help").stdout


def test_version(giaann: Run) -> None:
    assert giaann("--version").stdout.startswith("giaann 0.")


def test_train_tells_what_it_learned_and_learns_a_text_once(
    giaann: Run, text: Path, tmp_path: Path
) -> None:
    first = giaann("solo", "train", text, "--db", tmp_path, *WORDS)
    assert "learned 3 of 3 sentences" in first.stdout
    digest = json.loads(giaann("solo", "info", "--db", tmp_path, "--json").stdout)["digest"]
    again = giaann("solo", "train", text, "--db", tmp_path, *WORDS)
    assert again.returncode == 0
    assert "known already (1 chunk)" in again.stdout
    assert json.loads(giaann("solo", "info", "--db", tmp_path, "--json").stdout)["digest"] == digest


def test_epochs_learn_a_text_so_many_times(giaann: Run, text: Path, tmp_path: Path) -> None:
    giaann("solo", "train", text, "--db", tmp_path, *WORDS, "--epochs", "2")
    once, twice = (
        json.loads(giaann("solo", "info", "--db", where, "--json").stdout)
        for where in (_trained(giaann, text, tmp_path / "once"), tmp_path)
    )
    assert twice["connections"] == once["connections"]
    assert twice["occurrences"] == 2 * once["occurrences"]


def _trained(giaann: Run, text: Path, where: Path) -> Path:
    assert giaann("solo", "train", text, "--db", where, *WORDS).returncode == 0
    return where


def test_train_reads_standard_input(giaann: Run, text: Path, tmp_path: Path, db: Path) -> None:
    done = giaann("solo", "train", "-", "--db", tmp_path, *WORDS, stdin=text.read_bytes())
    assert "learned 3 of 3" in done.stdout
    infos = [json.loads(giaann("solo", "info", "--db", d, "--json").stdout) for d in (tmp_path, db)]
    assert infos[0]["digest"] == infos[1]["digest"]


def test_train_as_json_tells_the_skips(giaann: Run, tmp_path: Path) -> None:
    file = tmp_path / "short.txt"
    file.write_text("Too short.\n\nAlso too short.\n")
    done = giaann("solo", "train", file, "--db", tmp_path / "db", *WORDS, "--json")
    report = json.loads(done.stdout)
    assert report["sentences"] == 2
    assert report["skips"] == {"too short": {"count": 2, "first_line": 1}}


def test_prompt_goes_on_with_what_was_learned(giaann: Run, db: Path) -> None:
    done = giaann("solo", "prompt", PROMPT, "--db", db)
    assert (done.returncode, done.stdout) == (0, PROMPT + REST + "\n")


def test_streaming_writes_the_same_text(giaann: Run, db: Path) -> None:
    assert giaann("solo", "prompt", PROMPT, "--db", db, "--stream").stdout == PROMPT + REST + "\n"


def test_prompt_from_standard_input(giaann: Run, db: Path) -> None:
    done = giaann("solo", "prompt", "-", "--db", db, stdin=PROMPT + "\n")
    assert done.stdout == PROMPT + REST + "\n"


def test_prompt_completes_a_word_that_it_cuts(giaann: Run, db: Path) -> None:
    begun = "Many poets fought in the Spanish"
    done = giaann("solo", "prompt", begun, "--db", db, "--max-tokens", "2")
    assert done.stdout == f"{begun} civil war that ended\n"


def test_prompt_as_json_holds_the_evidence(giaann: Run, db: Path) -> None:
    answer = json.loads(giaann("solo", "prompt", PROMPT, "--db", db, "--json").stdout)
    assert answer["text"] == REST
    assert answer["stopped"] == "end"
    first = answer["tokens"][0]
    known = {"text", "word", "concept", "feature", "timing", "score", "candidates", "probability"}
    assert set(first) == known
    assert (first["word"], first["timing"], first["candidates"]) == ("collect", "exact", 1)
    assert first["probability"] == 1


def test_streamed_json_is_one_token_a_line(giaann: Run, db: Path) -> None:
    done = giaann("solo", "prompt", PROMPT, "--db", db, "--json", "--stream")
    first, *tokens, last = map(json.loads, done.stdout.splitlines())
    assert first == {"completion": "", "unknown": []}
    assert " ".join(one["word"] for one in tokens) == "collect from flower in the summer ."
    assert "".join(one["text"] for one in tokens) == REST
    assert last == {"stopped": "end"}


def test_the_token_limit_is_told_from_an_end(giaann: Run, db: Path) -> None:
    done = giaann("solo", "prompt", PROMPT, "--db", db, "--max-tokens", "2", "--json")
    answer = json.loads(done.stdout)
    assert (len(answer["tokens"]), answer["stopped"]) == (2, "limit")


def test_explain_tells_what_speaks_for_each_token(giaann: Run, db: Path) -> None:
    lines = giaann("solo", "prompt", PROMPT, "--db", db, "--explain").stdout.splitlines()
    assert len(lines) == 8
    assert lines[3].split()[:3] == ["flower", "exact", "score"]
    assert lines[3].endswith("of    1 candidates  flower/*")


@pytest.mark.parametrize("timing", ["auto", "exact", "seq", "none", "biased"])
def test_every_timing_recalls_a_text_this_small(giaann: Run, db: Path, timing: str) -> None:
    done = giaann("solo", "prompt", PROMPT, "--db", db, "--timing", timing, "--max-tokens", "7")
    assert done.stdout == PROMPT + REST + "\n"


@pytest.mark.parametrize("beam", ["2x3", "1x1"])
def test_looking_ahead_finds_the_same_in_a_text_this_small(
    giaann: Run, db: Path, beam: str
) -> None:
    done = giaann("solo", "prompt", PROMPT, "--db", db, "--beam", beam)
    assert done.stdout == PROMPT + REST + "\n"


def test_what_was_never_learned_is_answered_by_a_guess(giaann: Run, db: Path) -> None:
    done = giaann("solo", "prompt", "Zebras eat grass", "--db", db, "--explain")
    assert done.returncode == 0
    prompt, token, *_ = done.stdout.splitlines()
    assert prompt.startswith("Zebras eat grass ")
    assert " no evidence " in token
    assert " p 0." in token
    assert "never learned: zebra, grass" in done.stdout


def test_eval_prints_the_accuracy(giaann: Run, db: Path, text: Path) -> None:
    line = giaann("solo", "eval", text, "--db", db, "--timing", "exact").stdout
    assert line.startswith("accuracy 1.0000 (")
    score = json.loads(giaann("solo", "eval", text, "--db", db, "--feed", "own", "--json").stdout)
    assert score["accuracy"] == 1.0
    assert score["sentences"] == 3
    assert score["tokens_per_second"] > 0


def test_recall_counts_completed_sentences(giaann: Run, db: Path, text: Path) -> None:
    assert (
        giaann("solo", "recall", text, "--db", db).stdout == "recalled 1.0000 (3 of 3 sentences)\n"
    )
    result = json.loads(giaann("solo", "recall", text, "--db", db, "--words", "3", "--json").stdout)
    assert result["sentences"] == 3
    assert result["recalled"] + len(result["missed"]) == 3


def test_totals_say_which_sentences_do_not_count(giaann: Run, db: Path, tmp_path: Path) -> None:
    file = tmp_path / "four.txt"
    file.write_text(f"{TEXT}Too short.\n")
    line = giaann("solo", "recall", file, "--db", db, "--words", "14").stdout
    assert "sentences; left out: 1 with nothing after the words given and 1 that training" in line
    line = giaann("solo", "eval", file, "--db", db, "--seed-tokens", "15").stdout
    assert (
        " on 1 sentences; left out: 2 with nothing after the seed and 1 that training skips" in line
    )
    found = json.loads(giaann("solo", "eval", file, "--db", db, "--json").stdout)
    assert (found["sentences"], found["too_short"], found["skipped"]) == (3, 0, 1)


def test_info_tells_what_it_holds(giaann: Run, db: Path, text: Path) -> None:
    info = json.loads(giaann("solo", "info", "--db", db, "--json").stdout)
    told = {"name": str(text), "epoch": 1, "chunks": 1, "complete": True, "foreign": False}
    assert info["texts"] == [told]
    lines = giaann("solo", "info", "--db", db).stdout
    assert info["digest"] in lines
    assert f"{info['connections']:,} connections" in lines


def test_fsck_and_compact(giaann: Run, text: Path, tmp_path: Path) -> None:
    giaann("solo", "train", text, "--db", tmp_path, *WORDS)
    digest = json.loads(giaann("solo", "info", "--db", tmp_path, "--json").stdout)["digest"]
    for _ in range(2):
        done = giaann("solo", "fsck", "--db", tmp_path)
        assert done.stdout.startswith("all is well: ")
        assert f"digest {digest}" in done.stdout
        checked = json.loads(giaann("solo", "fsck", "--db", tmp_path, "--json").stdout)
        assert (checked["problems"], checked["digest"]) == ([], digest)
        done = giaann("solo", "compact", "--db", tmp_path)
        assert "bytes before" in done.stdout
    assert (tmp_path / "snapshot-00000003").exists()


def test_a_column_of_a_brain(giaann: Run, db: Path, tmp_path: Path) -> None:
    file = tmp_path / "bee.svg"
    done = giaann("solo", "column", "bee", "--words", "3", "--db", db, "--picture", file)
    assert (done.returncode, done.stderr) == (0, "")
    head, *rows, count = done.stdout.splitlines()
    assert head.split() == ["word", "occurred", "connections", "leads", "to"]
    assert len(rows) == 3
    assert count.startswith("bee: ")
    assert count.endswith(" words, 3 of them shown")
    assert ">bee<" in file.read_text()
    found = json.loads(giaann("solo", "column", "bee", "--json", "--db", db).stdout)
    assert {*found} == {"concept", "size", "words"}
    assert found["size"] == len(found["words"])
    done = giaann("solo", "column", "zorp", "--db", db)
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout == "zorp: the brain has not learned this noun; try another form of it\n"
