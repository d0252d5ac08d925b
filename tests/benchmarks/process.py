"""Measuring in a fresh process: its memory, its time."""

import ctypes
import gc
import os
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import ParamSpec, TypeVar

import torch

from giaann_p2p.store.memory.heap import give_back

P = ParamSpec("P")
T = TypeVar("T")

_KB = 1024


def apart(action: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Do something in a new process."""
    context = get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, initializer=_begin) as processes:
        return processes.submit(action, *arguments, **named).result()


def _begin() -> None:
    torch.set_num_threads(1)


def medians(runs: list[dict[str, float]]) -> dict[str, float]:
    """Return the median of each figure."""
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


@dataclass
class Taken:
    """Seconds that something took."""

    wall: float = 0.0
    cpu: float = 0.0
    """Of all threads."""


@contextmanager
def timed(taken: Taken | None = None) -> Iterator[Taken]:
    """Measure a block; more than once, it adds up."""
    taken = taken or Taken()
    wall, cpu = time.perf_counter(), time.process_time()
    yield taken
    taken.wall += time.perf_counter() - wall
    taken.cpu += time.process_time() - cpu


class Queue:
    """How long some threads of this process have waited for a processor that others had.

    It is asked without letting go of the interpreter's lock, so that no other thread gets it now.
    """

    def __init__(self, *threads: int) -> None:
        self._files = [
            os.open(f"/proc/self/task/{thread}/schedstat", os.O_RDONLY) for thread in threads
        ]
        self._read = ctypes.PyDLL(None).pread
        self._text = ctypes.create_string_buffer(64)

    def waited(self) -> float:
        """Return the seconds so far, of all of them together."""
        return sum(map(self._waited, self._files)) / 1e9

    def _waited(self, file: int) -> int:
        self._read(file, self._text, 64, 0)
        return int(self._text.value.split()[1])

    def close(self) -> None:
        """Let go of the files."""
        for file in self._files:
            os.close(file)


class Memory:
    """How much memory the process has beyond what it had at first, in bytes."""

    def __init__(self) -> None:
        gc.collect()
        give_back()
        self._first = _status("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # the peak so far

    def now(self) -> int:
        """Return how much it is."""
        gc.collect()
        return _status("VmRSS") - self._first

    def peak(self) -> int:
        """Return how much it was at most."""
        return _status("VmHWM") - self._first


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(name + ":"))
    return int(line.split()[1]) * _KB
