"""A reader, who has cloned the project, stands in it with an empty home, and types what it says."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self, TypeVar

from tests.cli.conftest import GIAANN
from tests.docs.blocks import PYTHON, ROOT
from tests.docs.plays import Play, block_of
from tests.unit.local.helpers import eventually

T = TypeVar("T")
WITHIN = 600.0
_COMMAND = f"""\
#!/bin/sh
# The giaann command; what listens, and is not told where, does so on loopback.
case " $* " in
    *" --listen "*) ;;
    " storage "*|" compute "*|" bootstrap "*|" doctor "*)
        set -- "$@" --listen /ip4/127.0.0.1/tcp/0 ;;
esac
exec "{GIAANN[0]}" -c "{GIAANN[2]}" "$@"
"""
_ANYWHERE = re.compile(r"/ip4/0\.0\.0\.0/tcp/\d+")
_INSTALLS = "pip install "


class Reader:
    """Runs blocks in a folder of its own; leaves no process when it is closed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.words = {"FOLDER": "~/.local/share/giaann/club/bootstrap"}
        """What stands for words such as LINK."""
        self._lasting: dict[str, subprocess.Popen[bytes]] = {}
        (folder / "tests").mkdir()
        (folder / "tests" / "data").symlink_to(ROOT / "tests" / "data")
        (folder / "bin").mkdir()
        (folder / "bin" / "giaann").write_text(_COMMAND)
        (folder / "bin" / "giaann").chmod(0o755)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._lasting.values():
            _end(process)

    def play(self, play: Play) -> list[str]:
        """Run a block; return what each command writes to standard output."""
        block = block_of(play)
        home = "elsewhere" if play.elsewhere else "home"
        if block.kind in PYTHON:
            return [self.run([sys.executable, "-c", block.text])]
        output = []
        for command in block.commands():
            for other in _of(play.before, command) or ():
                self._type(other, play, home)
            if not command.startswith(_INSTALLS):  # CI has
                output.append(self._type(command, play, home))
        if play.as_shown:
            assert "".join(output).strip() == block.output()
        return output

    def _type(self, command: str, play: Play, home: str) -> str:
        ready, code = _of(play.lasting, command), _of(play.codes, command) or 0
        if ready is not None:
            output = self.start(self.filled(command), ready, home)
        else:
            output = self.run(["bash", "-c", self.filled(command)], code, home)
        self._note(command, output)
        return output

    def filled(self, command: str) -> str:
        """Return a command with what its words stand for, and only for this machine."""
        for word, meaning in self.words.items():
            command = re.sub(rf"\b{word}\b", meaning, command)
        return _ANYWHERE.sub("/ip4/127.0.0.1/tcp/0", command)

    def run(self, command: list[str], code: int = 0, home: str = "home") -> str:
        """Run a command to its end; return what it writes."""
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=self._environment(home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            out, err = process.communicate(timeout=WITHIN)
        finally:
            if process.returncode is None:
                _end(process)
        assert process.returncode == code, f"{command}: {out.decode()}{err.decode()}"
        return out.decode()

    def start(self, command: str, ready: str, home: str) -> str:
        """Start a command that lasts; return what it wrote when it was under way.

        One that is started again, as after changing its options, is ended first.
        """
        name = re.sub(r" --(?!data-dir)\S+( [^-\s]\S*)?|\s*#.*", "", f"{home} {command}")
        if name in self._lasting:
            _end(self._lasting.pop(name))
        log = self.folder / f"{len(list(self.folder.glob('*.log')))}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                cwd=self.folder,
                env=self._environment(home),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._lasting[name] = process

        def under_way() -> bool:
            return bool(re.search(ready, log.read_text())) or process.poll() is not None

        eventually(under_way, WITHIN)
        assert re.search(ready, log.read_text()), f"{command}: {log.read_text()}"
        return log.read_text()

    def _note(self, command: str, output: str) -> None:
        """Note what later commands mean by LINK, NAME and TOKEN."""
        if "bootstrap --new" in command and (link := re.search(r"giaann://\S+", output)):
            self.words.setdefault("LINK", link[0])
        if command.startswith("giaann token name"):
            self.words["NAME"] = output.strip()
        if command.startswith("giaann token issue"):
            self.words["TOKEN"] = output.strip()

    def _environment(self, home: str) -> dict[str, str]:
        ours = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "GIAANN_"))}
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        (self.folder / home).mkdir(exist_ok=True)
        return {**ours, "PATH": path, "HOME": str(self.folder / home)}


def _of(table: Mapping[str, T], command: str) -> T | None:
    """Return the entry of a command, by what the command begins with."""
    return next((entry for begin, entry in table.items() if command.startswith(begin)), None)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command and all that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
