"""The command's entry."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from giaann_p2p.cli import main
from tests.unit.peers.helpers import LINK

_LOADED = "import sys; import giaann_p2p.cli.main; print(*sorted(sys.modules))"


@pytest.mark.parametrize("slow", ["torch", "spacy", "hivemind"])
def test_help_waits_for_nothing_that_takes_long_to_load(slow: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LOADED], capture_output=True, text=True, timeout=500, check=True
    )
    assert slow not in done.stdout.split()


_ENTRY = "from giaann_p2p.cli.main import main; main()"
_WRONG = """
import sys
from giaann_p2p.cli.main import main
try:
    main()
except SystemExit as end:
    code = end.code
print(code, *(one for one in ("torch", "spacy", "hivemind") if one in sys.modules))
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["solo", "prompt", "", "--db", "brain"],
        ["solo", "prompt", "Bees", "--db", "none"],
        ["solo", "prompt", "Bees", "--db", "none", "--beam", "3y"],
        ["solo", "train", "none.txt", "--db", "brain"],
        ["solo", "eval", "none.txt", "--db", "brain"],
        ["solo", "recall", "none.txt", "--db", "brain"],
        ["solo", "info", "--db", "none"],
        ["solo", "export", "--db", "none"],
        ["prompt", " ", "--join", LINK],
        ["prompt", "Bees", "--join", LINK[:-8]],
        ["prompt", "Bees", "--join", "unknown-name"],
        ["chat", "--join", LINK[:60]],
        ["train", "none.txt", "--join", LINK],
        ["train", ".", "--join", LINK],
        ["eval", "none.txt", "--join", LINK],
        ["status", "--join", LINK[:-1]],
        ["column", "", "--join", LINK],
        ["fsck", "--join", LINK, "--against", "none"],
        ["storage", "--join", LINK[:-8]],
        ["storage", "--join", LINK, "--capacity", "much"],
        ["compute", "--join", "unknown-name"],
        ["bootstrap"],
        ["token", "name", "--join", LINK[:-8]],
        ["token", "inspect", "x"],
        ["token", "accept", "x"],
        ["join", LINK[:-8], "--as", "bees"],
        ["status", "--frob"],
        ["frobnicate"],
    ],
    ids=" ".join,
)
def test_wrong_input_is_reported_before_anything_that_takes_long_is_loaded(
    tmp_path: Path, arguments: list[str]
) -> None:
    command = [sys.executable, "-c", _WRONG, *arguments]
    home = {name: str(tmp_path) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
        cwd=tmp_path,
        env={**os.environ, **home, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    assert (done.stdout, done.returncode) == ("2\n", 0)
    assert done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_thread_pools_have_one_thread_unless_the_user_wants_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = dict[str, str]()
    monkeypatch.setattr(main, "app", lambda **_: seen.update(os.environ))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("MKL_NUM_THREADS", "3")
    main.main()
    assert (seen["OMP_NUM_THREADS"], seen["MKL_NUM_THREADS"]) == ("1", "3")


def test_ctrl_c_before_a_command_begins_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def app(**_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "app", app)
    with pytest.raises(SystemExit) as end:
        main.main()
    assert end.value.code == 130


def test_a_command_may_have_no_standard_output(tmp_path: Path) -> None:
    command = f'"{sys.executable}" -c "{_ENTRY}" solo prompt - --db none <&- >&-'
    done = subprocess.run(
        ["sh", "-c", command],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("giaann: the prompt is empty")


_INTERRUPTED_AT = """
import signal, sys
class Finder:
    def find_spec(self, name, path, target=None):
        if name == "{module}":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Finder())
from giaann_p2p.cli.entry import main
sys.argv = ["giaann", "--version"]
main()
"""


@pytest.mark.parametrize("module", ["giaann_p2p.cli.main", "typer", "giaann_p2p.terminal"])
def test_ctrl_c_while_the_command_line_is_imported_is_no_traceback(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED_AT.format(module=module)],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "giaann: interrupted\n")
