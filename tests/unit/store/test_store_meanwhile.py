"""What goes on in a store at the same time: reads, writes, shards that come and go, Ctrl-C."""

import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

from giaann_p2p.model.rows import Neuron, Question
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.memory import columns
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from tests.helpers import SMALL
from tests.helpers_store import JOB, copy_of
from tests.unit.store.helpers import ALL, LESSONS, in_memory, same, taught

INTERRUPTED = {"store.py", "journal.py", "contextlib.py"}


def test_reading_while_shards_come_and_go_sees_all_of_a_row_or_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Half of a row is merged and half is not, so a reader in between would see one of them."""
    monkeypatch.setattr(columns, "_LEAST_PENDING", 1 << 19)
    store = Store.in_memory(SMALL, Layout(shards=1))
    store.hold([0])
    one = LESSONS[0]
    wrong: list[object] = []
    done = threading.Event()
    question = Question([next(iter(one.rows))])
    counts = {0, *(one.rows[question.neurons[0]].count * i for i in (1, 2))}

    def read() -> None:
        last = -1
        while not done.is_set():
            (row,) = store.read(question)
            count = row.count if row else 0
            if count not in counts or (last == 2 and count == 1 and row):
                wrong.append(row)
            last = count

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    until = time.monotonic() + 1
    while time.monotonic() < until:
        store.apply([one.update([0])])
        held = store.content(0)  # merges
        store.apply([Update(JOB, 1000, np.zeros(1, np.uint16), one.delta)])
        store.drop([0])
        store.adopt(held)
        store.drop([0])
        store.hold([0])
    done.set()
    for reader in readers:
        reader.join()
    assert wrong == []


@pytest.mark.interrupts
def test_ctrl_c_in_the_middle_of_writes_leaves_whole_chunks(disk: FakeDisk, store: Store) -> None:
    """As Ctrl-C does, at many moments; each chunk is in or not, and the store goes on."""
    interrupted, at = 0, 0
    rng = random.Random(0)
    started = time.monotonic()
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        while at < len(LESSONS) and time.monotonic() - started < 20:
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.random() / 200)
                while at < len(LESSONS):
                    store.apply([LESSONS[at].update(ALL)])
                    if at % 5 == 0:
                        store.snapshot()
                    at += 1
            except KeyboardInterrupt:
                interrupted += 1
                signal.setitimer(signal.ITIMER_REAL, 0)
                at = len(store.applied(0, JOB))
                if interrupted % 4 == 0:
                    assert same(store, taught(*LESSONS[:at]))
                    assert same(Store.open(copy_of(disk)), taught(*LESSONS[:at]))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    assert interrupted > 3
    assert same(store, taught(*LESSONS))
    store.close()
    assert same(Store.open(disk), taught(*LESSONS))


@pytest.mark.interrupts
def test_ctrl_c_at_any_call_leaves_the_lock_free() -> None:
    """What interrupted a write is still being handled when the next one begins.

    Python looks for signals where functions begin and end, and not between the lines of a block.
    """
    calls, interrupted = 0, True
    before, handler = sys.gettrace(), signal.getsignal(signal.SIGINT)
    while interrupted:
        calls += 1
        interrupted = False
        store = in_memory()
        left = calls

        def trace(frame: FrameType, event: str, argument: object) -> Callable[..., object] | None:
            nonlocal left
            if Path(frame.f_code.co_filename).name not in INTERRUPTED:
                return None
            left -= event in ("call", "return")
            if not left:
                raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        try:
            store.note("key", b"value")
        except KeyboardInterrupt:
            sys.settrace(before)
            interrupted = True
            assert not store._journal.lock.locked(), f"call {calls}"
        finally:
            sys.settrace(before)
            signal.signal(signal.SIGINT, handler)
    assert calls > 10


def test_rows_stay_readable_while_shards_are_taken_in() -> None:
    store = in_memory(*LESSONS[:3])
    delta = LESSONS[0].delta
    neurons = list(map(Neuron, delta.concept.tolist(), delta.feature.tolist()))
    missing: list[None] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            missing.extend(row for row in store.read(Question(neurons)) if row is None)

    reader = threading.Thread(target=read)
    reader.start()
    for count in range(4, len(LESSONS)):
        store.adopt(in_memory(*LESSONS[:count]).content(*ALL))
    done.set()
    reader.join()
    assert missing == []
    assert same(store, taught(*LESSONS[:-1]))
