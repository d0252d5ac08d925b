"""Turns a process that was forked from the zygote into a peer; it keeps only imported modules."""

import io
import os
import random
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

from giaann_p2p.local import linux
from giaann_p2p.local.orders import Spawn

_INTERRUPTED = 128 + signal.SIGINT
"""Exit code of a peer that SIGINT ended."""


def become(peer: Spawn, parent: int, let_go: Callable[[], None]) -> NoReturn:
    """Run a peer in this forked process, and exit with its code. The caller blocks all signals.

    `parent`: the zygote's process id. `let_go` closes the file descriptors inherited from it.
    """
    code = 1
    try:
        linux.die_with_parent()
        if os.getppid() == parent:  # else it died before `die_with_parent`
            let_go()
            _settle(peer)
            code = _call(peer)
    except BaseException:  # noqa: BLE001  (a fork must not return into the zygote's loop)
        traceback.print_exc()
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        with suppress(OSError, ValueError):
            sys.stderr.flush()
        os._exit(code)


def _settle(peer: Spawn) -> None:
    """Give the process the peer's name, streams, environment, folder, arguments and signals."""
    os.setsid()
    linux.call_it(peer.name)
    _take_streams(peer.log)
    os.environ.update(peer.environment)
    os.chdir(peer.folder)
    sys.argv = [peer.entry, *peer.arguments]
    _forget_chance()
    _take_signals()


def _take_streams(log: str) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(output)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # the usual type
            stream.reconfigure(line_buffering=True)


def _forget_chance() -> None:
    """Reseed all random generators: otherwise all forked peers would draw the same numbers."""
    random.seed()
    if "numpy" in sys.modules:
        import_module("numpy").random.seed()
    if "torch" in sys.modules:
        import_module("torch").seed()


def _take_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _call(peer: Spawn) -> int:
    """Call the peer's entry function; return the exit code of the process."""
    module, _, function = peer.entry.partition(":")
    try:
        return _code(getattr(import_module(module), function)(peer.arguments))
    except SystemExit as end:
        return _code(end.code)
    except KeyboardInterrupt:
        return _INTERRUPTED


def _code(result: object) -> int:
    """Return the exit code that `sys.exit(result)` would give; print a result that is no number."""
    if result is None:
        return 0
    if isinstance(result, int):
        return result & 0xFF
    print(result, file=sys.stderr)  # noqa: T201  (as sys.exit does)
    return 1
