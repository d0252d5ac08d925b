"""Peers that are none: they tell of themselves as daemons do, and behave in one way or another."""

import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from giaann_p2p.local.status_file import Status, StatusFile


def option(arguments: list[str], name: str) -> str:
    return arguments[arguments.index(name) + 1] if name in arguments else ""


def _listening(arguments: list[str]) -> tuple[socket.socket, str]:
    """Listen where it was told to; the address with the port that this came to."""
    way, _, port = option(arguments, "--listen").rpartition("/")
    door = socket.socket()
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    door.bind(("127.0.0.1", int(port)))
    door.listen()
    return door, f"{way}/{door.getsockname()[1]}"


def ready(arguments: list[str]) -> int:
    """Be ready at once; sleep until it is ended."""
    file = StatusFile(Path(option(arguments, "--status-file")))
    file.write(Status(state="joining"))
    _, listen = _listening(arguments)
    print(f"pid {os.getpid()} has {' '.join(arguments)} and draws {random.random()}")
    with (Path(option(arguments, "--data-dir")) / "starts").open("a") as starts:
        starts.write(f"{os.getpid()}\n")
    link = f"giaann:{option(arguments, '--new')}@{listen}" if "--new" in arguments else ""
    port = int(listen.rpartition("/")[2])
    file.write(Status(state="ready", link=link, listen=listen, metrics_port=port, peer="12D3"))
    while True:
        signal.pause()


def orderly(arguments: list[str]) -> int:
    """Be ready, and end in good order at the first SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    return _waiting(arguments)


def draining(arguments: list[str]) -> int:
    """Be ready, and end only at the second SIGTERM."""
    times = [0]

    def leave(*_: object) -> None:
        times[0] += 1
        if times[0] == 2:
            sys.exit(0)

    signal.signal(signal.SIGTERM, leave)
    return _waiting(arguments)


def stubborn(arguments: list[str]) -> int:
    """Be ready, and never end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return _waiting(arguments)


def parent(arguments: list[str]) -> int:
    """Be ready with two processes: one in its group, one that has left it."""
    subprocess.Popen(["sleep", "1000"])
    subprocess.Popen(["sleep", "1000"], start_new_session=True)
    return ready(arguments)


def crashing(_arguments: list[str]) -> int:
    """End with an error, which it prints."""
    raise RuntimeError("there is no bread")


def brief(arguments: list[str]) -> str:
    """Be ready for a moment, and end with words."""
    _tell_ready(arguments)
    time.sleep(0.1)
    return "that was it"


def silent(_arguments: list[str]) -> int:
    """Never tell anything."""
    time.sleep(1000)
    return 0


def _tell_ready(arguments: list[str]) -> None:
    link = "giaann:x" if "--new" in arguments else ""
    StatusFile(Path(option(arguments, "--status-file"))).write(Status(state="ready", link=link))


def _waiting(arguments: list[str]) -> int:
    _tell_ready(arguments)
    while True:
        time.sleep(1000)
