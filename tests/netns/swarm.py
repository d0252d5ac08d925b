"""A swarm whose peers are each on a host of their own, and a visitor who is on another one.

What is started here is a command as a user gives it. It dies with this process, and everything on
the hosts is killed at the end; that nothing is left is checked then.
"""

import asyncio
import json
import os
import subprocess
import threading
import time
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from giaann_p2p.client.session import Session, visit
from giaann_p2p.local.status_file import READY, StatusFile
from giaann_p2p.swarm.wire.link import Link
from tests.cli.conftest import GIAANN
from tests.e2e.material import Wiki
from tests.e2e.writer import Writer
from tests.netns.network import Host, Network

Result = TypeVar("Result")
_LISTEN = "/ip4/0.0.0.0/tcp/4100"
_LOOK_EVERY = 0.1
_READY_WITHIN, _GONE_WITHIN = 240.0, 60.0
_LAST_LINES = 15
_PATIENCE = "4"


class Daemon:
    """A peer's process on its host; a restart finds what it has kept."""

    def __init__(self, role: str, host: Host, folder: Path, options: Sequence[str]) -> None:
        self.role, self.host, self._folder = role, host, folder
        folder.mkdir(parents=True)
        self._options = [*options, "--data-dir", str(folder / "data"), "--listen", _LISTEN]
        self._status = StatusFile(folder / "status.json")
        self._options += ["--status-file", str(folder / "status.json")]
        self._process: subprocess.Popen[bytes] | None = None

    def __repr__(self) -> str:
        return f"<{self.role} at {self.host}>"

    def start(self) -> None:
        """Begin, or begin again."""
        environment = os.environ | {"TMPDIR": str(self._folder.parent / "tmp")}
        environment.pop("XDG_RUNTIME_DIR", None)
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self.host.command([*GIAANN, self.role, *self._options]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
            )

    def wait_ready(self, within: float = _READY_WITHIN) -> str:
        """Return its link, if it gives one, when it is ready."""
        assert self._process is not None
        until = time.monotonic() + within
        while True:
            status = self._status.read()
            if status and status.pid == self._process.pid and status.state == READY:
                return status.link
            assert self._process.poll() is None, f"{self} has ended: {self.last_words()}"
            assert time.monotonic() < until, f"{self} is not ready: {status}, {self.last_words()}"
            time.sleep(_LOOK_EVERY)

    def kill(self) -> None:
        """End it as a power cut does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def wait_gone(self) -> None:
        """Wait until nothing runs on its host: p2pd ends by itself when its peer has."""
        until = time.monotonic() + _GONE_WITHIN
        while left := self.host.processes():
            assert time.monotonic() < until, f"processes {left} are left on {self.host}"
            time.sleep(_LOOK_EVERY)

    def last_words(self) -> str:
        """Return the end of its log."""
        lines = (self._folder / "log").read_text(errors="replace").splitlines()
        return "\n".join(lines[-_LAST_LINES:])


class Visitor:
    """Somebody on a host who pushes and reads: a thread of its own, in the host's namespace."""

    def __init__(self, host: Host, link: str) -> None:
        self.host = host
        self.visiting: Session
        self._link = Link.read(link)
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._began: Future[None] = Future()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        try:
            self._began.result()
        except BaseException:
            self._thread.join()
            raise

    def begin(self, work: Coroutine[Any, Any, Result]) -> "Future[Result]":
        """Have something done there meanwhile."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def do(self, work: Coroutine[Any, Any, Result], within: float = 120.0) -> Result:
        """Have something done there, and wait for it."""
        future = self.begin(work)
        try:
            return future.result(within)
        finally:
            future.cancel()

    def close(self) -> None:
        """End the visit."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            try:
                self.host.enter()
                runner.run(self._visit())
            except BaseException as error:  # noqa: BLE001  (whoever waits for it is to have it)
                if not self._began.done():
                    self._began.set_exception(error)

    async def _visit(self) -> None:
        async with visit(self._link) as self.visiting:
            self._began.set_result(None)
            await self._over.wait()


class Swarm:
    """A bootstrap peer and storage peers; more can be added."""

    def __init__(self, folder: Path, storages: int = 3, founding: Sequence[str] = ()) -> None:
        self.network = Network()
        self.daemons: list[Daemon] = []
        self._folder, self._visitors = folder, list[Visitor]()
        (folder / "tmp").mkdir(parents=True)
        try:
            new = ("--new", "netns", "--open", "--shards", "64", "--replicas", "3")
            new += ("--profile", "words")
            self.bootstrap = self._daemon("bootstrap", *new, *founding)
            self.link = self.bootstrap.wait_ready()
            self.storages = [self.add("storage") for _ in range(storages)]
            self.wait_ready()
        except BaseException:
            self.show()
            self.close()
            raise

    def __enter__(self) -> "Swarm":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.show()
        self.close()

    def add(self, role: str, *options: str, host: Host | None = None) -> Daemon:
        """Start one more peer, on a host of its own."""
        if role == "storage":
            options = ("--patience", _PATIENCE, *options)
        return self._daemon(role, "--join", self.link, *options, host=host)

    def wait_ready(self, within: float = _READY_WITHIN) -> None:
        """Wait until all peers are."""
        for daemon in self.daemons:
            daemon.wait_ready(within)

    def visitor(self) -> Visitor:
        """Have somebody visit it, from a host of their own."""
        visitor = Visitor(self.network.host(), self.link)
        self._visitors.append(visitor)
        return visitor

    def writer(self, seed: int = 0) -> tuple[Visitor, Writer]:
        """Have somebody visit it who can teach it the text of the tests."""
        visitor = self.visitor()
        manifest = visitor.visiting.manifest
        return visitor, Writer(visitor.visiting, Wiki(manifest.spec, manifest.layout), seed)

    def told(self, *command: str, host: Host | None = None) -> dict[str, Any]:
        """Give a command on a host, a new one if none is named; return the JSON that it prints."""
        host = host or self.network.host()
        found = host.run(*GIAANN, *command, "--join", self.link, "--json")
        return dict(json.loads(found))

    def show(self) -> None:
        """Print what may tell why a test fails."""
        for daemon in self.daemons:
            print(f"--- {daemon}\n{daemon.last_words()}")

    def close(self) -> None:
        """End everything; see that nothing is left."""
        for visitor in self._visitors:
            visitor.close()
        for daemon in self.daemons:
            daemon.kill()
        try:
            for daemon in self.daemons:
                daemon.wait_gone()
        finally:
            self.network.close()

    def _daemon(self, role: str, *options: str, host: Host | None = None) -> Daemon:
        folder = self._folder / f"{role}-{len(self.daemons)}"
        daemon = Daemon(role, host or self.network.host(), folder, options)
        self.daemons.append(daemon)
        daemon.start()
        return daemon
