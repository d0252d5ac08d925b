"""What a peer does, by what was heard of it."""

from collections.abc import Callable

import pytest

from giaann_p2p.local.folder import Known
from giaann_p2p.local.peer import Peer, ProcessState, how_ended
from giaann_p2p.local.status_file import Status


def peer() -> Peer:
    return Peer(Known(name="storage-1", role="storage"))


def begin(one: Peer) -> None:
    one.begin(100.0)
    one.pid = 7


def tell(state: str, pid: int = 7) -> Callable[[Peer], object]:
    return lambda one: one.hear(Status(state=state, pid=pid))


def pause(one: Peer) -> None:
    one.paused = True


def end(one: Peer) -> None:
    one.end(-9, 130.0)


@pytest.mark.parametrize(
    ("events", "state", "alive"),
    [
        ([], ProcessState.WAITING, False),
        ([begin], ProcessState.STARTING, True),
        ([begin, tell("joining")], ProcessState.RUNNING, True),
        ([begin, tell("joining"), tell("ready")], ProcessState.READY, True),
        ([begin, tell("ready", pid=6)], ProcessState.STARTING, True),
        ([tell("ready", pid=0)], ProcessState.WAITING, False),
        ([begin, tell("ready"), tell("draining")], ProcessState.RUNNING, True),
        ([begin, pause], ProcessState.STOPPED, True),
        ([begin, tell("ready"), pause], ProcessState.STOPPED, True),
        ([begin, tell("ready"), pause, end], ProcessState.ENDED, False),
        ([begin, tell("ready"), end, tell("ready")], ProcessState.ENDED, False),
        ([begin, tell("ready"), end, begin], ProcessState.STARTING, True),
        ([begin, pause, end, begin, tell("ready")], ProcessState.READY, True),
    ],
)
def test_a_state_comes_from_what_was_heard(
    events: list[Callable[[Peer], object]], state: ProcessState, alive: bool
) -> None:
    one = peer()
    for event in events:
        event(one)
    assert (one.state, one.alive) == (state, alive)
    assert repr(one) == f"<Peer storage-1: {state}>"


def test_only_news_are_news() -> None:
    one = peer()
    begin(one)
    assert not one.hear(None)
    status = Status(state="ready", pid=7, listen="/ip4/127.0.0.1/tcp/5", metrics_port=6, peer="P")
    assert one.hear(status)
    assert not one.hear(status)
    assert one.known == Known(
        name="storage-1", role="storage", listen="/ip4/127.0.0.1/tcp/5", metrics_port=6
    )
    one.hear(Status(state="draining", pid=7))  # which says nothing of ports
    assert (one.listen, one.known.metrics_port) == ("/ip4/127.0.0.1/tcp/5", 6)


def test_a_view_tells_all() -> None:
    one = peer()
    assert one.view(100.0).seconds == 0
    begin(one)
    one.hear(Status(state="ready", pid=7, peer="P"))
    view = one.view(103.5, memory=5)
    assert (view.pid, view.seconds, view.told, view.peer, view.memory) == (7, 3.5, "ready", "P", 5)
    one.end(3, 130.0)
    view = one.view(131.0)
    assert (view.pid, view.code, view.seconds, view.state) == (0, 3, 1.0, ProcessState.ENDED)


def test_who_does_not_last_stays_away_longer_each_time() -> None:
    one, now, pauses = peer(), 0.0, []
    for _ in range(9):
        one.begin(now)
        one.end(1, now + 1)
        pauses.append(one.backoff.pause)
        now += 10
    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    one.begin(now)
    one.end(1, now + 61)
    assert one.backoff.pause == 0.5


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "ended with exit code 0"),
        (3, "ended with exit code 3"),
        (-9, "was ended by SIGKILL"),
        (-50, "was ended by signal 50"),
    ],
)
def test_an_end_in_words(code: int, words: str) -> None:
    assert how_ended(code) == words
