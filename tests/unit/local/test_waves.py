"""Some peers start at a time, and others wait as long as these come further."""

from collections.abc import Sequence

import pytest

from giaann_p2p.local.folder import Known
from giaann_p2p.local.peer import Peer, View
from giaann_p2p.local.status_file import Status
from giaann_p2p.local.waves import Progress, next_wave


def peers(states: str, since: float = 100.0) -> list[Peer]:
    """Make peers that wait (w), start (s), run (j), are ready (r) or have ended (e)."""
    return [made(f"storage-{number}", state, since) for number, state in enumerate(states, 1)]


def made(name: str, state: str, since: float) -> Peer:
    one = Peer(Known(name=name, role="storage"))
    if state != "w":
        one.begin(since)
        one.pid = 7
    if state in "jr":
        one.hear(Status(state="ready" if state == "r" else "joining", pid=7))
    if state == "e":
        one.end(1, since)
    return one


@pytest.mark.parametrize(
    ("states", "now", "started"),
    [
        ("wwwww", 100, [1, 2, 3]),
        ("swwww", 100, [2, 3]),
        ("sjwww", 100, [3, 4]),
        ("ssrww", 129, [4]),
        ("sssww", 129, []),
        ("sssww", 130, [4, 5]),
        ("rerww", 100, [4, 5]),
        ("rerrr", 100, []),
        ("jjjjwww", 100, [5, 6]),
        ("jjjrjjwww", 100, [7]),
        ("jjjjjjwww", 100, []),  # all of them settle in
        ("jjjjjjwww", 144, []),
        ("jjjjjjwww", 145, [7, 8, 9]),
    ],
)
def test_so_many_start_at_a_time(states: str, now: float, started: list[int]) -> None:
    every = peers(states)
    waiting = [peer for peer, state in zip(every, states, strict=True) if state == "w"]
    wave = next_wave(waiting, every, now, at_once=3)
    assert [peer.name for peer in wave] == [f"storage-{number}" for number in started]


def views(states: str) -> Sequence[View]:
    return [peer.view(100.0) for peer in peers(states)]


def test_a_start_ends_in_vain_when_nobody_comes_further() -> None:
    progress = Progress(60, 1000)
    assert not progress.ends(views("ww"), 1050)
    assert not progress.ends(views("sw"), 1100)
    assert not progress.ends(views("jw"), 1150)
    assert not progress.ends(views("ww"), 1200)  # it was killed, and comes again
    assert not progress.ends(views("jw"), 1210)
    assert progress.ends(views("jw"), 1211)
    assert not progress.ends(views("jj"), 1212)


def test_without_any_peer_the_time_ends_as_well() -> None:
    progress = Progress(60, 1000)
    assert not progress.ends([], 1000)
    assert progress.ends([], 1061)
