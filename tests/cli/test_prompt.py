"""`giaann prompt`, `chat` and `eval`, as a user of a swarm of real processes runs them."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.living import Running

PROMPT = "Bees make honey from the nectar"
REST = " that they collect from flower in the summer."


def test_a_swarm_in_which_nobody_computes_says_so_and_what_to_do(
    giaann: Run, swarm: Running
) -> None:
    done = giaann("prompt", PROMPT, "--join", swarm.link)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no compute peer is in this swarm now" in done.stderr
    assert "--local" in done.stderr


def test_it_is_computed_here(giaann: Run, swarm: Running) -> None:
    done = giaann("prompt", PROMPT, "--local", "--join", swarm.link, "--stats", "--explain")
    assert (done.returncode, done.stderr) == (0, "")
    first, *lines = done.stdout.splitlines()
    assert first == PROMPT + REST
    words = REST.replace(".", " .").split()
    assert [line.split()[0] for line in lines[: len(words)]] == words
    assert lines[len(words)].startswith("  (the prompt)")
    assert re.fullmatch(
        r"a token: [\d.]+ ms, [\d.]+ round trips, [\d,]+ bytes; [\d,]+ of [\d,]+ rows at hand",
        lines[-1],
    )


def test_verified_it_is_computed_here(giaann: Run, swarm: Running) -> None:
    for options in ([], ["--stream"]):
        done = giaann("prompt", PROMPT, "--verify", "--join", swarm.link, *options)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{PROMPT}{REST}\n", "")


def test_it_streams_json_from_standard_input(giaann: Run, swarm: Running) -> None:
    options = ("--local", "--stream", "--json", "--stats", "--max-tokens", "3")
    done = giaann("prompt", "-", "--join", swarm.link, *options, stdin=PROMPT + "\n")
    assert (done.returncode, done.stderr) == (0, "")
    head, *tokens, end = map(json.loads, done.stdout.splitlines())
    assert head == {"completion": "", "unknown": []}
    assert [token["text"] for token in tokens] == [" that", " they", " collect"]
    assert {token["timing"] for token in tokens} <= {"exact", "seq", "none"}
    assert all(token["ms"] > 0 for token in tokens)
    assert end == {"stopped": "limit", "lies": [], "undecided": 0}


def test_the_same_as_one_machine_in_json(giaann: Run, swarm: Running, db: Path) -> None:
    for options in (["--timing", "none"], ["--beam", "2x2"], ["--graded-strengths"]):
        one = giaann("solo", "prompt", PROMPT, "--db", db, "--json", *options)
        all_ = giaann("prompt", PROMPT, "--local", "--join", swarm.link, "--json", *options)
        nobody = {"lies": [], "undecided": 0}
        assert json.loads(all_.stdout) == json.loads(one.stdout) | nobody


@pytest.mark.parametrize("prompt", ["the zorp", "of the", "Zebras eat"])
def test_any_prompt_is_answered_as_by_one_machine(
    giaann: Run, swarm: Running, db: Path, prompt: str
) -> None:
    one = giaann("solo", "prompt", prompt, "--db", db, "--json")
    all_ = giaann("prompt", prompt, "--join", swarm.link, "--json", "--local")
    found = json.loads(all_.stdout)
    assert found == json.loads(one.stdout) | {"lies": [], "undecided": 0}
    (first, *_) = found["tokens"]
    assert first["timing"] in ("any column", "no evidence")
    assert 0 < first["probability"] <= 1


def test_no_such_swarm(giaann: Run, swarm: Running) -> None:
    done = giaann("prompt", PROMPT, "--join", "nonsense")
    assert done.returncode == 2
    assert "link" in done.stderr


@pytest.mark.parametrize("where", ["--local", "--verify"])
def test_chat(giaann: Run, swarm: Running, where: str) -> None:
    typed = "\n".join(
        [
            "/help",
            "",
            PROMPT,
            "/max 2",
            "/timing none",
            "/stats",
            PROMPT,
            "/nonsense",
            "of",
            "/quit",
        ]
    )
    done = giaann("chat", where, "--join", swarm.link, stdin=typed)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Each line is a prompt")
    assert PROMPT + REST in lines
    assert PROMPT + " that they" in lines
    assert "the cost of each token is shown" in lines
    assert "'/nonsense' is not a command" in done.stderr
    assert any(line.startswith("of ") for line in lines)  # even that is answered


def test_eval_is_what_one_machine_says(giaann: Run, swarm: Running, db: Path, text: Path) -> None:
    ways: list[list[str]] = [[], ["--feed", "own"], ["--timing", "none", "--seed-tokens", "4"]]
    for options, verify in zip(ways, ([], [], ["--verify"]), strict=True):
        one = json.loads(giaann("solo", "eval", text, "--db", db, "--json", *options).stdout)
        done = giaann("eval", text, "--join", swarm.link, "--json", *options, *verify)
        found = json.loads(done.stdout)
        for timed in ("seconds", "tokens_per_second"):
            assert one.pop(timed)
            assert found.pop(timed)
        assert found == one | {"lies": [], "undecided": 0}
