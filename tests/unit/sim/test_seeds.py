"""Many histories: in order, in however many processes; what is wrong with one is told."""

import gc
from functools import partial

import pytest

from giaann_p2p.errors import WorkerError
from giaann_p2p.sim import run as run_module
from giaann_p2p.sim import seeds as seeds_module
from giaann_p2p.sim import trace as trace_module
from giaann_p2p.sim.run import Outcome, run
from giaann_p2p.sim.seeds import Played, Size, play, summary

SHORT = Size(storages=4, clients=1, minutes=0.2, chunks=2)


def outcome(seed: int, settled: float, *problems: str) -> Outcome:
    return Outcome(seed, list(problems), settled, 10, 20, 3, 1000, [], {})


@pytest.mark.slow
def test_processes_change_nothing() -> None:
    alone = [one.outcome for one in play([5, 3, 4], SHORT, 1, everything=True)]
    assert [one.seed for one in alone] == [5, 3, 4]
    assert all(one.committed >= 2 and not one.problems for one in alone)
    others = [one.outcome for one in play([5, 3, 4], SHORT, 2, everything=True)]
    assert others == alone


def short(seed: int, trouble: float = 12.0, everything: bool = True) -> Outcome:
    return run(seed, storages=4, clients=1, chunks=2, trouble=trouble, everything=everything)


def test_a_seed_is_the_same_each_time_and_another_one_is_not() -> None:
    assert short(1) == short(1)
    assert short(1).trace != short(2).trace


def test_a_trace_is_whole_or_only_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_module, "_LAST", 10)
    whole, end = short(7).trace, short(7, everything=False).trace
    assert len(whole) > len(end) == 10
    assert whole[-10:] == end


def test_a_history_that_raises_is_one_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def __init__(self, *_: object) -> None:
            raise KeyError("nothing")

    monkeypatch.setattr(run_module, "Faults", Broken)
    found = run(1)
    assert found.problems == ["KeyError: 'nothing'"]
    assert "Traceback" in found.trace[-6] or any("Traceback" in line for line in found.trace)


def test_a_history_fails_that_is_not_well_in_time() -> None:
    (one,) = play([1], Size(storages=4, clients=1, minutes=0.0, chunks=2), 1)
    assert (one.outcome.problems, one.outcome.settled > 0) == ([], True)
    assert run(1, storages=4, clients=1, chunks=2, trouble=0.0, patience=0.0).problems


@pytest.mark.slow
def test_a_history_may_last_longer_than_usual() -> None:
    (one,) = play([1], Size(storages=4, clients=1, minutes=21.0, chunks=2), 1)
    assert one.outcome.problems == []
    assert 1260 <= one.outcome.settled < 1460


def test_a_process_that_dies_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def dying(*_: object) -> object:
        raise WorkerError("a parsing process died")

    monkeypatch.setattr(seeds_module, "in_processes", dying)
    with pytest.raises(WorkerError, match=r"a simulating process died.*--workers 1"):
        list(play([1, 2], SHORT, 2))


def test_sums() -> None:
    played = [
        Played(outcome(3, 450.0), 2.0),
        Played(outcome(4, 900.0, "all is lost"), 2.0),
        Played(outcome(5, 460.0), 2.0),
    ]
    total = summary(played, Size(), 5.0)
    assert (total.seeds, total.failed, total.virtual_seconds) == (3, [4], 1810.0)
    assert (total.slowest, total.settled_after) == (5, 40.0)  # one that failed never settled
    assert (total.bytes, total.committed, total.answered, total.unanswered) == (3000, 30, 60, 9)
    assert summary([], Size(), 1.0).slowest is None


def test_a_process_of_many_histories_freezes_once_what_was_there_before() -> None:
    work, before = partial(seeds_module._play, SHORT, False), gc.get_threshold()
    try:
        gc.unfreeze()
        one = seeds_module._among_others(work, 3)
        frozen = gc.get_freeze_count()
        assert frozen > 0
        assert gc.get_threshold()[0] == 50_000  # a usual one costs much time
        other = seeds_module._among_others(work, 3)
        assert gc.get_freeze_count() <= frozen  # what a history leaves behind can be collected
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
    assert one.outcome == other.outcome
