"""Commands are imported when they are used."""

import subprocess
import sys

import pytest

from giaann_p2p.cli.lazy import Commands

_LOADED = """
import sys
from giaann_p2p.cli.main import main
try:
    main()
except SystemExit:
    pass
print(*sorted(one for one in sys.modules if one.startswith("giaann_p2p.cli.")))
"""


def test_a_command_imports_no_other_command() -> None:
    command = [sys.executable, "-c", _LOADED, "join", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert "giaann_p2p.cli.join" in loaded
    assert not {f"giaann_p2p.cli.{name}" for name in ("solo", "chat", "train", "sim")} & {*loaded}


def test_commands_are_listed_before_they_are_imported_and_imported_once() -> None:
    commands = Commands({"column": "giaann_p2p.cli.column:column", "none": "no.such:module"})
    assert (list(commands), len(commands)) == (["column", "none"], 2)
    assert commands["column"] is commands["column"]
    assert commands["column"].name == "column"
    assert commands.get("another") is None
    with pytest.raises(ModuleNotFoundError):
        commands["none"]
