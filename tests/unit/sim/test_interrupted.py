"""Ctrl-C in the middle of a history: no machine's tasks are left behind."""

import asyncio
import os
import signal
from collections.abc import Callable

import pytest

from giaann_p2p.sim.loop import MachineLoop
from giaann_p2p.sim.run import run
from giaann_p2p.sim.scenario import play


def a_history() -> None:
    run(1, storages=4, chunks=2, trouble=12)


def a_script() -> None:
    play("storages 4\nclient push 0-1\nrun 6\ncrash peer1\nrestart peer1\nrun 60\n")


@pytest.mark.interrupts
@pytest.mark.parametrize("play_it", [a_history, a_script])
@pytest.mark.parametrize("at", [1, 2, 10, *range(300, 320)])
def test_ctrl_c_leaves_no_task(
    monkeypatch: pytest.MonkeyPatch, at: int, play_it: Callable[[], None]
) -> None:
    """It comes when a task is about to go on: were it raised there, nothing would end the task."""
    loops = list[asyncio.AbstractEventLoop]()
    step = asyncio.Handle._run

    def _run(handle: asyncio.Handle) -> None:
        loops.append(asyncio.get_running_loop())
        if len(loops) == at:
            os.kill(os.getpid(), signal.SIGINT)
        step(handle)

    monkeypatch.setattr(asyncio.Handle, "_run", _run)
    with pytest.raises(KeyboardInterrupt):
        play_it()
    assert all(isinstance(loop, MachineLoop) for loop in loops)
    assert not [task for loop in set(loops) for task in asyncio.all_tasks(loop)]
