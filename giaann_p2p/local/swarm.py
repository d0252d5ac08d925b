"""A swarm on this machine, from its start to its end.

    with LocalSwarm(storages=5, replicas=3) as swarm:
        join(swarm.link)
        swarm.kill("storage-2")
        swarm.add("storage")

When the block ends, no process and no socket is left, and no file outside the swarm's folder.
Without the argument `folder`, the folder is a temporary one, and is removed, too.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Self

import msgspec

from giaann_p2p.errors import GiaannError, UsageError
from giaann_p2p.local import linux
from giaann_p2p.local.control import Answer, Question
from giaann_p2p.local.errors import EndedError, LocalSwarmError, NotRunningError
from giaann_p2p.local.folder import Folder, Hold
from giaann_p2p.local.logs import how_it_ended
from giaann_p2p.local.nursery import places
from giaann_p2p.local.peer import ProcessState, View, how_ended
from giaann_p2p.local.remote import ANSWERS_WITHIN, Remote
from giaann_p2p.local.roles import Spec
from giaann_p2p.local.suggest import nearest
from giaann_p2p.local.supervise import Word
from giaann_p2p.local.waves import Progress

_PAUSE = 0.02
"""Seconds between two looks at the peers."""
_NAMED = 8
"""Maximum number of late peers that an error names."""
_ENDS_BEYOND_GRACE = 20.0
"""Seconds after the peers' grace period within which the supervisor has to end."""


class LocalSwarm(Remote):
    """A swarm that this process starts; the settings are those of `Spec`."""

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
        """The swarm's join link; empty until the first peer has reported it."""
        return self.look().link

    def start(self) -> None:
        """Start the supervisor, which starts the peers; return once it accepts requests."""
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
        """Let the swarm outlive this process; its spec must have `attached=False`."""
        if self._process is not None:
            _close_pipes(self._process)
            self._process.returncode = 0  # so that Python does not wait for it
            self._process = None

    def close(self, now: bool = False) -> None:
        """End the swarm and wait for its end; `now`: kill the peers instead of waiting for them."""
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
            if process.returncode < 0:  # it was killed: clean up after it
                with suppress(GiaannError, OSError), Hold(self.folder):
                    pass
        if self.spec.temporary:
            shutil.rmtree(self.folder.path, ignore_errors=True)

    def hurry(self) -> None:
        """Have the supervisor kill all peers instead of waiting for them; return at once."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)

    def wait_ready(
        self,
        names: Collection[str] = (),
        within: float | None = None,
        gives_up: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Wait until the named peers are ready or, without names, all; return whether they are.

        They are not if `gives_up` returned True. Raises LocalSwarmError if one of them has ended,
        or if none has made progress for `within` seconds, by default the spec's `link_within`.
        """
        within = self.spec.link_within if within is None else within
        progress = Progress(within, time.monotonic())
        while not gives_up():
            peers = self._chosen(names)
            if _all_ready(peers, self.folder):
                return True
            if progress.ends(peers, time.monotonic()):
                raise LocalSwarmError(_late(peers, within))
            time.sleep(_PAUSE)
        return False

    def wait_ended(self, name: str, within: float = 30.0) -> int:
        """Wait until a peer ends; return its exit code or, negative, the signal that ended it."""
        until = time.monotonic() + within
        while (code := self.peer(name).code) is None:
            if time.monotonic() > until:
                raise LocalSwarmError(f"{name} has not ended in {within:g} s")
            time.sleep(_PAUSE)
        return code

    def peers(self) -> list[View]:
        """Return the state of every peer."""
        return self.look().peers

    def peer(self, name: str) -> View:
        """Return the state of a peer; UsageError if there is none of that name."""
        peers = {peer.name: peer for peer in self.peers()}
        if name not in peers:
            raise UsageError(f"there is no peer {name!r}{nearest(name, peers)}")
        return peers[name]

    def started_by(self, name: str) -> dict[int, str]:
        """Return the ids of all processes that a peer has started, with their programs' names."""
        return {pid: linux.command(pid) for pid in linux.descendants(self.peer(name).pid)}

    def _chosen(self, names: Collection[str]) -> list[View]:
        return [self.peer(name) for name in names] if names else self.peers()

    def _ask(self, question: Question, within: float = ANSWERS_WITHIN) -> Answer:
        try:
            return super()._ask(question, within)
        except NotRunningError:
            if self._process is None:
                raise
            raise self._farewell(self._process) from None

    def _farewell(self, process: "subprocess.Popen[bytes]") -> NotRunningError:
        """Return an error that says why the swarm has ended, from the supervisor's last line."""
        try:
            code = process.wait(self.spec.grace + _ENDS_BEYOND_GRACE)
        except subprocess.TimeoutExpired:
            return NotRunningError("the supervisor does not answer; see its log, or kill it")
        word = _word(process)
        if word is None:
            return NotRunningError(
                f"the supervisor {how_ended(code)}, and all peers have ended with it"
            )
        if word.error:
            return NotRunningError(word.error)
        return EndedError("the swarm has ended, because a user asked for it")

    @staticmethod
    def _greeted(process: "subprocess.Popen[bytes]") -> None:
        """Wait for the supervisor's first line; raise its error if it could not start."""
        word = _word(process)
        if word is None:
            _, told = process.communicate()
            said = told.decode(errors="replace").strip().rpartition("\n")[2]
            raise LocalSwarmError(f"the supervisor could not start: {said}")
        if word.error:
            raise (UsageError if word.usage else LocalSwarmError)(word.error)


def _all_ready(peers: Collection[View], folder: Folder) -> bool:
    """Return whether there are peers and all are ready; LocalSwarmError if one has ended."""
    for peer in peers:
        if peer.code is not None:
            raise LocalSwarmError(how_it_ended(peer.name, peer.code, folder))
    return bool(peers) and all(peer.state == ProcessState.READY for peer in peers)


def _late(peers: Collection[View], within: float) -> str:
    late = [f"{peer.name} is {peer.state}" for peer in peers if peer.state != ProcessState.READY]
    more = f" and {len(late) - _NAMED} more" if len(late) > _NAMED else ""
    what = ", ".join(late[:_NAMED]) + more if late else "none has started"
    return f"no peer has made progress for {within:g} s: {what}; their logs may say why"


def _word(process: "subprocess.Popen[bytes]") -> Word | None:
    line = process.stdout.readline() if process.stdout is not None else b""
    return msgspec.json.decode(line, type=Word) if line else None


def _close_pipes(process: "subprocess.Popen[bytes]") -> None:
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
