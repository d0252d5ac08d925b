"""The supervisor's connection to the zygote: it sends orders, and receives news."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from giaann_p2p.local import linux
from giaann_p2p.local.errors import LocalSwarmError
from giaann_p2p.local.folder import Folder
from giaann_p2p.local.orders import Failed, News, Order, Ready, line_of, read_news
from giaann_p2p.machine import ONE_THREAD

_ENDS_WITHIN = 5.0
"""Seconds within which the zygote has to end before it is killed."""


class Nursery:
    """The zygote, as the supervisor sees it: a process, and the connection to it."""

    def __init__(self, folder: Folder, on_news: Callable[[News], None]) -> None:
        self._folder = folder
        self._on_news = on_news
        self._process: subprocess.Popen[bytes] | None = None
        self._writer: asyncio.StreamWriter | None = None
        self.ended = asyncio.Event()
        """Set once the zygote, and all its peers with it, has ended."""

    async def start(self, modules: Sequence[str], within: float) -> None:
        """Start the zygote and wait for its imports; LocalSwarmError if they fail or are late."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = _run(self._folder, theirs.fileno(), modules)
        self._reader, self._writer = await asyncio.open_connection(sock=ours)
        try:
            async with asyncio.timeout(within):
                line = await self._reader.readline()
        except TimeoutError:
            raise LocalSwarmError(
                f"importing the peers' modules took more than {within:g} s; see logs/zygote.log"
            ) from None
        first = read_news(line) if line else Failed("see logs/zygote.log")
        if not isinstance(first, Ready):
            why = first.why if isinstance(first, Failed) else repr(first)
            raise LocalSwarmError(f"the peers' modules could not be imported: {why}")
        self._listener = asyncio.create_task(self._listen())

    @property
    def pid(self) -> int:
        """The process id of the zygote; 0 before its start."""
        return 0 if self._process is None else self._process.pid

    def tell(self, order: Order) -> None:
        """Send an order to the zygote; do nothing if it has ended."""
        if self._writer is not None and not self.ended.is_set():
            self._writer.write(line_of(order))

    async def close(self) -> None:
        """End the zygote, and all processes that it has forked."""
        if self._writer is not None:
            self._writer.close()
            with suppress(OSError):
                await self._writer.wait_closed()
        if self._process is not None:
            await asyncio.to_thread(self._wait, self._process)

    async def _listen(self) -> None:
        with suppress(OSError):
            while line := await self._reader.readline():
                self._on_news(read_news(line))
        self.ended.set()

    def _wait(self, process: "subprocess.Popen[bytes]") -> None:
        try:
            process.wait(_ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        linux.kill_marked(self._folder.path, _ENDS_WITHIN)


def places() -> str:
    """Return the import path of this process, for a child that must import the same modules."""
    return os.pathsep.join(os.path.abspath(place) for place in sys.path)  # noqa: PTH100


def _run(folder: Folder, line: int, modules: Sequence[str]) -> "subprocess.Popen[bytes]":
    """Start the zygote's process; `line` is the file descriptor of its end of the socket."""
    command = [sys.executable, "-P", "-m", "giaann_p2p.local.zygote", str(line), str(folder.path)]
    run = str(folder.run)
    environment = {
        "GOMAXPROCS": "1",  # all p2pds share the machine, and each takes a quarter less time so
        **os.environ,
        **ONE_THREAD,  # the zygote must have no other thread when it forks peers
        "PYTHONPATH": places(),
        "TMPDIR": run,
        "XDG_RUNTIME_DIR": run,
        linux.MARK: str(folder.path),
    }
    with folder.log("zygote").open("ab") as log:
        return subprocess.Popen(  # noqa: S603  (our own program)
            [*command, *modules],
            pass_fds=[line],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
