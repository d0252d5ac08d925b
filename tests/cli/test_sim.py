"""`giaann sim`: histories that pass, one that fails, scripts, and wrong input."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from giaann_p2p.sim import seeds
from giaann_p2p.sim.run import Outcome
from tests.cli.conftest import GIAANN, Run
from tests.cli.test_interrupt import interrupted

SHORT = ["--storages", "4", "--clients", "1", "--minutes", "0.2", "--chunks", "2"]
SCRIPTS = Path(__file__).parent.parent / "sim" / "scenarios"


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every odd seed fail."""

    def run(seed: int, *, everything: bool, **_: object) -> Outcome:
        problems = ["all is lost", "and more"] if seed % 2 else []
        return Outcome(seed, problems, 450.0, 10, 20, 3, 1000, [f"line {everything}"], {})

    monkeypatch.setattr(seeds, "run", run)


def test_histories_are_summed_up(giaann: Run) -> None:
    done = giaann("sim", "--seeds", "3,5-6", "--workers", "1", *SHORT)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[:2] == ["seeds      3", "passed     3"]
    assert [line.split()[0] for line in lines[2:]] == [
        "time",
        "network",
        "learned",
        "reads",
        "slowest",
    ]


def test_json_tells_of_each_seed(giaann: Run) -> None:
    done = giaann("sim", "--seed", "3", "--json", *SHORT)
    found = json.loads(done.stdout)
    assert (found["seeds"], found["failed"], found["slowest"]) == (1, [], 3)
    (outcome,) = found["outcomes"]
    assert (outcome["seed"], outcome["problems"]) == (3, [])
    assert outcome["committed"] == found["committed"] >= 2
    assert outcome["settled"] == found["virtual_seconds"] > 12
    assert "trace" not in outcome
    done = giaann("sim", "--seed", "3", "--json", "--trace", *SHORT)
    assert "begins with 0 shards on its disk" in json.loads(done.stdout)["outcomes"][0]["trace"][0]


@pytest.mark.slow
def test_newcomers_take_part(giaann: Run) -> None:
    size = ["--minutes", "2", "--storages", "3", "--chunks", "2", "--newcomers"]
    done = giaann("sim", "--seed", "3", *size, "--trace")
    assert (done.returncode, done.stderr) == (0, "")
    assert "newcomer2" in done.stdout
    for wrong in (["--hostile", "6"], ["--minutes", "1"]):
        assert giaann("sim", "--newcomers", *wrong).returncode == 2


def test_the_founder_raises_the_numbers_of_replicas_and_shards(giaann: Run) -> None:
    size = ["--minutes", "1", "--storages", "4", "--chunks", "2", "--reshard"]
    done = giaann("sim", "--seed", "3", *size, "--trace")
    assert (done.returncode, done.stderr) == (0, "")
    assert "signs <Editions: 2, 5 replicas, 64 shards>" in done.stdout


def test_real_storage_nodes_take_part(giaann: Run) -> None:
    done = giaann("sim", "--seed", "3", "--trace", *SHORT)
    assert (done.returncode, done.stderr) == (0, "")
    assert any("peer0       INFO: ready " in line for line in done.stdout.splitlines())


def test_a_failed_history_of_newcomers_is_named_with_them(giaann: Run, failing: None) -> None:
    done = giaann("sim", "--seed", "3", "--newcomers", "--chunks", "5")
    assert "giaann sim --seed 3 --chunks 5 --newcomers --trace" in done.stdout


def test_hostile_peers_take_part(giaann: Run) -> None:
    hostile = ["--minutes", "0.8", "--storages", "3", "--chunks", "2", "--hostile", "6"]
    done = giaann("sim", "--seed", "3", *hostile)
    assert (done.returncode, done.stderr) == (0, "")
    told = [line.split(maxsplit=2)[2] for line in done.stdout.splitlines() if "hostile " in line]
    assert {"strangers refused", "records refused", "sent: flood"} <= set(told)


def test_a_trace_tells_all(giaann: Run) -> None:
    done = giaann("sim", "--seed", "3", "--trace", *SHORT)
    lines = done.stdout.splitlines()
    assert lines[0] == "    0.000  peer0       begins with 0 shards on its disk"
    assert any(line.endswith("world       is whole again") for line in lines)
    assert "passed     1" in lines


@pytest.mark.usefixtures("failing")
def test_a_failure_is_told_with_the_command_that_shows_it_again(giaann: Run) -> None:
    done = giaann("sim", "--seeds", "0-9", "--workers", "1", "--minutes", "1.5", "--storages", "9")
    assert done.returncode == 1
    assert done.stdout.splitlines()[:6] == [
        "seed 1 failed at 450 s:",
        "  all is lost",
        "  and more",
        "  to replay it: giaann sim --seed 1 --storages 9 --minutes 1.5 --trace",
        "seeds      2",
        "passed     1",
    ]
    assert "failed     1" in done.stdout.splitlines()
    assert "8 more were not run; --keep-going" in done.stderr


@pytest.mark.usefixtures("failing")
def test_one_can_go_on_behind_a_failure(giaann: Run) -> None:
    done = giaann("sim", "--seeds", "0-5", "--workers", "1", "--keep-going")
    assert done.returncode == 1
    assert done.stderr == ""
    assert "failed     1, 3, 5" in done.stdout.splitlines()
    assert "  to replay it: giaann sim --seed 3 --trace" in done.stdout.splitlines()
    done = giaann("sim", "--seeds", "1,3", "--workers", "1", "--keep-going", "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert (found["failed"], found["slowest"]) == ([1, 3], None)
    assert found["outcomes"][1]["problems"] == ["all is lost", "and more"]


@pytest.mark.usefixtures("failing")
def test_if_none_is_named_there_are_ten(giaann: Run) -> None:
    done = giaann("sim", "--workers", "1", "--keep-going")
    assert "seeds      10" in done.stdout.splitlines()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--seeds", "x"], "neither a seed nor a range"),
        (["--seeds", ""], "neither a seed nor a range"),
        (["--seeds", "1-"], "neither a seed nor a range"),
        (["--seeds", "-1"], "neither a seed nor a range"),
        (["--seeds", "1-2-3"], "neither a seed nor a range"),
        (["--seeds", "٣"], "neither a seed nor a range"),
        (["--seeds", "5-2"], "write 2-5"),
        (["--seeds", "0-1000000"], "is out of range"),
        (["--seeds", "9223372036854775808"], "is out of range"),
        (["--seeds", "9" * 5000], "is out of range"),
        (["--seed", "-1"], "Invalid value"),
        (["--seed", "1", "--seeds", "2"], "not both"),
        (["--seeds", "1-2", "--trace"], "name it with --seed"),
        (["--seed", "1", "--minutes", "nan"], "Invalid value"),
        (["--seed", "1", "--minutes", "-1"], "Invalid value"),
        (["--seed", "1", "--storages", "2"], "Invalid value"),
        (["--seed", "1", "--clients", "0"], "Invalid value"),
        (["--seed", "1", "--chunks", "1001"], "Invalid value"),
        (["--seed", "1", "--hostile", "91"], "Invalid value"),
        (["--script", "file", "--seeds", "2"], "not --seeds"),
        (["more"], "extra argument"),
    ],
)
def test_wrong_usage(giaann: Run, arguments: list[str], why: str) -> None:
    done = giaann("sim", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert why in " ".join(done.stderr.split())


def test_a_script_is_played_and_shown(giaann: Run, tmp_path: Path) -> None:
    script = tmp_path / "script.txt"
    script.write_text("storages 1  # alone\n\ncheck\n")
    done = giaann("sim", "--script", script)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[:3] == ["storages 1  # alone", "> peer0 begins with 0 shards on its disk", ""]
    assert lines[3] == "check"


def test_a_script_that_expects_something_else_fails(giaann: Run, tmp_path: Path) -> None:
    done = giaann("sim", "--script", SCRIPTS / "slow_disk.txt")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (SCRIPTS / "slow_disk.txt").read_text()
    script = tmp_path / "script.txt"
    script.write_bytes(done.stdout.rstrip("\n").encode())
    done = giaann("sim", "--script", script)
    assert (done.returncode, done.stderr) == (0, "")
    script.write_text("storages 1\n> peer7 begins\n")
    done = giaann("sim", "--script", script)
    assert done.returncode == 1
    assert "the outcome is not what" in done.stderr
    assert "peer7" not in done.stdout


def test_a_script_is_read_as_utf_8_wherever_the_user_lives(tmp_path: Path) -> None:
    script = tmp_path / "script.txt"
    script.write_text("storages 1  # fünf\n", encoding="utf-8")
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [*GIAANN, "sim", "--script", script],
        env={**os.environ, **locale, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode().startswith("storages 1  # fünf\n")


def test_a_script_that_cannot_be_played_is_told_with_its_line(giaann: Run, tmp_path: Path) -> None:
    script = tmp_path / "script.txt"
    script.write_text("storages 3\nexplode peer1\n")
    done = giaann("sim", "--script", script)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{script}:2: 'explode peer1': there is no such command" in done.stderr
    done = giaann("sim", "--script", tmp_path / "none.txt")
    assert done.returncode == 2
    assert "none.txt: No such file or directory" in done.stderr
    script.write_bytes(b"\xff\xfe")
    done = giaann("sim", "--script", script)
    assert done.returncode == 2
    assert "is not a UTF-8 text" in done.stderr


@pytest.mark.slow
def test_another_process_with_other_hashes_comes_to_the_same() -> None:
    command = [*GIAANN, "sim", "--seed", "6", "--minutes", "2", "--trace", "--json"]
    found = []
    for seed in ("1", "2"):
        done = subprocess.run(
            command,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        (outcome,) = json.loads(done.stdout)["outcomes"]
        del outcome["seconds"]
        found.append(outcome)
    assert len(found[0]["trace"]) > 100
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_tells_what_was_found_until_then(workers: str) -> None:
    code, out, seen = interrupted(
        ["sim", "--seeds", "0-9999", "--workers", workers, *SHORT],
        lambda seen: "2 passed" in seen,
    )
    assert code == 130
    assert "interrupted" in seen
    assert "slowest" in out
