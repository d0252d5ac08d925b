"""The supervisor's process: `python -m giaann_p2p.local.supervise FOLDER`. `LocalSwarm` starts it.

The process reads one line of input: the swarm's spec. It writes a line when it accepts requests, or
else one that says why it cannot, and a last line that says why the swarm has ended. If the spec
attaches the swarm to the process that started it, the end of input shuts it down. SIGTERM shuts it
down in good order; a second SIGTERM, or SIGQUIT, kills the peers instead of waiting.
"""

import asyncio
import logging
import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

from giaann_p2p.errors import GiaannError, UsageError
from giaann_p2p.local.folder import Folder, Hold, Record
from giaann_p2p.local.roles import Spec
from giaann_p2p.local.supervisor import Supervisor

_LOG = logging.getLogger(__name__)
_FIXED = (
    *("name", "shards", "replicas", "redundancy", "profile", "column_segments", "chunk"),
    *("cut", "cut_like"),
)
"""The settings of a spec that cannot change once a swarm is founded."""


class Word(msgspec.Struct, frozen=True):
    """A line of the supervisor's output: whether it could start, and later how the swarm ended."""

    error: str = ""
    """What went wrong; empty on success."""
    usage: bool = False
    """Whether the error is a mistake of the process that started the supervisor."""


def main() -> int:
    """Run the supervisor until the swarm has ended; return the exit code."""
    os.umask(0o077)
    try:
        spec = msgspec.json.decode(_first_line(), type=Spec)
        folder = Folder(Path(sys.argv[1]))
        with Hold(folder) as hold:
            hold.prepare()
            _write_log(folder.log("supervisor"))
            try:
                asyncio.run(_run(folder, spec))
            finally:
                hold.close()
                if spec.temporary:
                    shutil.rmtree(folder.path, ignore_errors=True)
    except (GiaannError, OSError, msgspec.DecodeError) as error:
        _LOG.error("%s", error)
        _say(Word(str(error), isinstance(error, UsageError)))
        return 1
    _say(Word())
    return 0


async def _run(folder: Folder, spec: Spec) -> None:
    record = folder.record()
    if record is not None:
        _fits(folder, record, spec)
    supervisor = Supervisor(folder, spec, record)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, supervisor.down)
    loop.add_signal_handler(signal.SIGQUIT, supervisor.down, True)
    if spec.attached:
        loop.add_reader(sys.stdin.fileno(), _end_of_input, supervisor)
    await supervisor.open()
    _say(Word())
    await supervisor.run()


def _fits(folder: Folder, record: Record, spec: Spec) -> None:
    """Raise UsageError if the spec changes settings that are fixed when a swarm is founded."""
    for name in _FIXED:
        before, now = (
            "none" if (value := getattr(one, name)) == "" else value for one in (record.spec, spec)
        )
        if before != now:
            raise UsageError(
                f"the swarm in {folder.path} was founded with {name} {before}, which cannot change;"
                f" for {name} {now}, name another folder"
            )


def _end_of_input(supervisor: Supervisor) -> None:
    """Read input; at its end, shut the swarm down, because the process that started it is gone."""
    if not os.read(sys.stdin.fileno(), 1 << 10):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        supervisor.down()


def _first_line() -> bytes:
    """Read one line of input byte by byte, so that nothing after it is consumed."""
    line = bytearray()
    while (byte := os.read(sys.stdin.fileno(), 1)) not in (b"", b"\n"):
        line += byte
    return bytes(line)


def _write_log(file: Path) -> None:
    log = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, sys.stderr.fileno())
    os.close(log)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")


def _say(word: Word) -> None:
    with suppress(OSError):  # the process that started this one is gone
        os.write(sys.stdout.fileno(), msgspec.json.encode(word) + b"\n")


if __name__ == "__main__":
    sys.exit(main())
