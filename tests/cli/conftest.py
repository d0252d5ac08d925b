"""The command, run as its entry point is, in this process; and a small brain to run it on.

A process of its own, which takes seconds to start, is for the tests that need one (`GIAANN`).
"""

import contextlib
import io
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from giaann_p2p.cli import main

if TYPE_CHECKING:
    from tests.cli.living import Running

GIAANN = [sys.executable, "-c", "from giaann_p2p.cli.main import main; main()"]

WORDS = ("--profile", "words")
TEXT = (
    "Bees make honey from the nectar that they collect from flowers in the summer.\n"
    "Many poets fought in the Spanish Civil War that ended in the spring of that year.\n"
    "Golden bees guard the hive against the wasps that come for the honey in autumn.\n"
)


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Done]


@pytest.fixture(scope="session")
def giaann() -> Run:
    def run(*arguments: str | Path, stdin: str | bytes = "") -> Done:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["giaann", *map(str, arguments)])
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
            patch.setenv("COLUMNS", "120")
            code: object = 0
            with (
                contextlib.redirect_stdout(io.StringIO()) as out,
                contextlib.redirect_stderr(io.StringIO()) as err,
            ):
                try:
                    main.main()
                except SystemExit as exit_:
                    code = exit_.code
        return Done(code if isinstance(code, int) else 0, out.getvalue(), err.getvalue())

    return run


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("text") / "bees.txt"
    file.write_text(TEXT)
    return file


@pytest.fixture(scope="session")
def db(giaann: Run, text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A brain that learned the text as words; only to be read."""
    directory = tmp_path_factory.mktemp("brain")
    assert giaann("solo", "train", text, "--db", directory, *WORDS).returncode == 0
    return directory


@pytest.fixture(scope="session")
def swarm(giaann: Run, db: Path) -> "Iterator[Running]":
    """A swarm that holds what the brain knows; only to be asked."""
    from tests.cli.living import living  # it imports what most commands do without

    with living(giaann, db) as found:
        yield found
