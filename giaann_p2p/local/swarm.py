"""A swarm on this machine, from its start to its end.

    with LocalSwarm(storages=5, replicas=3) as swarm:
        join(swarm.link)
        swarm.kill("storage-2")
        swarm.add("storage")

When the block ends nothing is left: no process, no socket, and no file but those in its folder; a
swarm without a folder has a temporary one, which is removed, too.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Self

import msgspec

from giaann_p2p.errors import GiaannError, UsageError
from giaann_p2p.local import linux
from giaann_p2p.local.control import Answer, Question
from giaann_p2p.local.errors import EndedError, LocalSwarmError, NotRunningError
from giaann_p2p.local.folder import Hold
from giaann_p2p.local.logs import how_it_ended
from giaann_p2p.local.nursery import places
from giaann_p2p.local.peer import ProcessState, View, how_ended
from giaann_p2p.local.remote import Remote
from giaann_p2p.local.roles import Spec
from giaann_p2p.local.suggest import nearest
from giaann_p2p.local.supervise import Word

_PAUSE = 0.02
_FAREWELL_WITHIN = 15.0
_NEVER = float("inf")
_ENDS_BEYOND_GRACE = 20.0


class LocalSwarm(Remote):
    """A swarm that this process starts: `Remote` has the operations, and `Spec` the settings."""

    def __init__(
        self, folder: Path | None = None, spec: Spec | None = None, **changes: object
    ) -> None:
        spec = msgspec.structs.replace(spec or Spec(), **changes, temporary=folder is None)
        super().__init__(
            Path(tempfile.mkdtemp(prefix="giaann-swarm-")) if folder is None else folder
        )
        self.spec = spec
        self._process: subprocess.Popen[bytes] | None = None

    def __repr__(self) -> str:
        runs = self._process is not None and self._process.poll() is None
        return f"<LocalSwarm: {self.folder.path}, {'runs' if runs else 'does not run'}>"

    def __enter__(self) -> Self:
        try:
            self.start()
            self.wait_ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def link(self) -> str:
        """The link by which others join; empty until the first peer has reported it."""
        return self.look().link

    def start(self) -> None:
        """Start the supervisor, which starts the peers; return as soon as it answers."""
        process = self._process = subprocess.Popen(  # noqa: S603  (our own program)
            [sys.executable, "-P", "-m", "giaann_p2p.local.supervise", str(self.folder.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": places()},
            start_new_session=True,
        )
        if process.stdin is not None:
            process.stdin.write(msgspec.json.encode(self.spec) + b"\n")
            process.stdin.flush()
        self._greeted(process)

    def let_go(self) -> None:
        """Detach: let the swarm outlive this process; only for one that is not attached."""
        if self._process is not None:
            _close_pipes(self._process)
            self._process.returncode = 0  # it is not waited for
            self._process = None

    def close(self, now: bool = False) -> None:
        """End everything; `now`: kill instead of waiting."""
        process = self._process
        if process is not None:
            try:
                process.send_signal(signal.SIGTERM)
                if now:
                    self.hurry()
                process.wait(self.spec.grace + _ENDS_BEYOND_GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            finally:
                _close_pipes(process)
                self._process = None
            if process.returncode < 0:  # it was killed, and has left remnants
                with suppress(GiaannError), Hold(self.folder):
                    pass
        if self.spec.temporary:
            shutil.rmtree(self.folder.path, ignore_errors=True)

    def hurry(self) -> None:
        """Kill everything instead of waiting; return at once."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)

    def wait_ready(self, names: Collection[str] = (), within: float | None = None) -> None:
        """Return when these peers are ready, or all; LocalSwarmError if one of them has ended."""
        until = time.monotonic() + (self.spec.start_within if within is None else within)
        while not self.is_ready(until, names):
            time.sleep(_PAUSE)

    def is_ready(self, until: float = _NEVER, names: Collection[str] = ()) -> bool:
        """Return whether these peers are ready, or all.

        LocalSwarmError if one has ended, or if they are not ready by a time of the monotonic clock.
        """
        peers = self._chosen(names)
        for peer in peers:
            if peer.code is not None:
                raise LocalSwarmError(how_it_ended(peer.name, peer.code, self.folder))
        late = [
            f"{peer.name} is {peer.state}" for peer in peers if peer.state != ProcessState.READY
        ]
        if (late or not peers) and time.monotonic() > until:
            what = ", ".join(late) or "none has begun"
            raise LocalSwarmError(f"not all peers are ready in time: {what}")
        return bool(peers) and not late

    def wait_ended(self, name: str, within: float = 30.0) -> int:
        """Return the exit code of a peer or, negative, the signal that ended it."""
        until = time.monotonic() + within
        while (code := self.peer(name).code) is None:
            if time.monotonic() > until:
                raise LocalSwarmError(f"{name} has not ended in {within:g} s")
            time.sleep(_PAUSE)
        return code

    def peers(self) -> list[View]:
        """Return the state of each peer."""
        return self.look().peers

    def peer(self, name: str) -> View:
        """Return the state of a peer."""
        peers = {peer.name: peer for peer in self.peers()}
        if name not in peers:
            raise UsageError(f"there is no peer {name!r}{nearest(name, peers)}")
        return peers[name]

    def started_by(self, name: str) -> dict[int, str]:
        """Return the processes that a peer has started, with the names of their programs."""
        return {pid: linux.command(pid) for pid in linux.descendants(self.peer(name).pid)}

    def _chosen(self, names: Collection[str]) -> list[View]:
        return [self.peer(name) for name in names] if names else self.peers()

    def _ask(self, question: Question) -> Answer:
        try:
            return super()._ask(question)
        except NotRunningError:
            if self._process is None:
                raise
            raise self._farewell(self._process) from None

    @staticmethod
    def _farewell(process: "subprocess.Popen[bytes]") -> NotRunningError:
        """Return the reason why the swarm has ended."""
        try:
            code = process.wait(_FAREWELL_WITHIN)
        except subprocess.TimeoutExpired:
            return NotRunningError("the supervisor does not answer; end it, or look into its log")
        word = _word(process)
        if word is None:
            return NotRunningError(
                f"the supervisor {how_ended(code)}, and all peers have ended with it"
            )
        if word.error:
            return NotRunningError(word.error)
        return EndedError("the swarm has ended, as somebody wished")

    @staticmethod
    def _greeted(process: "subprocess.Popen[bytes]") -> None:
        word = _word(process)
        if word is None:
            _, told = process.communicate()
            said = told.decode(errors="replace").strip().rpartition("\n")[2]
            raise LocalSwarmError(f"the supervisor could not start: {said}")
        if word.error:
            raise (UsageError if word.usage else LocalSwarmError)(word.error)


def _word(process: "subprocess.Popen[bytes]") -> Word | None:
    line = process.stdout.readline() if process.stdout is not None else b""
    return msgspec.json.decode(line, type=Word) if line else None


def _close_pipes(process: "subprocess.Popen[bytes]") -> None:
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
