"""What a forked process can be told to do, to see what it is."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

from giaann_p2p.local import linux


def tell(arguments: list[str]) -> None:
    """Write everything about this process to a file."""
    found = {
        "pid": os.getpid(),
        "parent": os.getppid(),
        "session": os.getsid(0),
        "group": os.getpgid(0),
        "arguments": arguments,
        "argv": sys.argv,
        "name": linux.command(os.getpid()),
        "folder": str(Path.cwd()),
        "bee": os.environ.get("BEE"),
        "input": str(Path("/proc/self/fd/0").readlink()),
        "files": sorted(int(name) for name in os.listdir("/proc/self/fd"))[:-1],  # noqa: PTH208
        "chance": random.random(),
        "blocked": [int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, [])],
        "term": signal.getsignal(signal.SIGTERM) is signal.SIG_DFL,
    }
    Path(arguments[0]).write_text(json.dumps(found))


def end(arguments: list[str]) -> object:
    """End as told."""
    print("to be flushed", end="")
    match arguments:
        case ["return", code]:
            return int(code)
        case ["exit", code]:
            sys.exit(int(code))
        case ["words"]:
            return "it rains"
        case ["raise"]:
            raise ValueError("no honey")
        case ["interrupt"]:
            os.kill(os.getpid(), signal.SIGINT)
        case ["signal", number]:
            os.kill(os.getpid(), int(number))
    return None


def sleep(_arguments: list[str]) -> None:
    """Sleep."""
    while True:
        signal.pause()


def family(_arguments: list[str]) -> None:
    """Have children, one of which has left the group, and sleep."""
    subprocess.Popen(["sleep", "1000"])
    subprocess.Popen(["sh", "-c", "sleep 1000 & wait"], start_new_session=True)
    sleep([])


def orphan(_arguments: list[str]) -> None:
    """End before a child does."""
    subprocess.Popen(["sleep", "1000"])
    subprocess.Popen(["sh", "-c", "sleep 1000 & wait"], start_new_session=True)
