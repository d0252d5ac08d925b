"""The parts of a gateway that decide alone: stops, keys, where it is, nouns, merged streams."""

import asyncio
import os
import stat
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from giaann_p2p.errors import UsageError
from giaann_p2p.gateway import whereabouts
from giaann_p2p.gateway.api_key import key_in
from giaann_p2p.gateway.failures import Busy
from giaann_p2p.gateway.limits import Limits
from giaann_p2p.gateway.merging import gathered, merged
from giaann_p2p.gateway.noun_index import NounIndex
from giaann_p2p.gateway.server import bound
from giaann_p2p.gateway.stops import Stops
from giaann_p2p.gateway.turns import Turns
from giaann_p2p.gateway.whereabouts import Whereabouts
from giaann_p2p.model.traits import traits_of

LETTERS = st.text("ab", max_size=6)


@given(st.lists(LETTERS), st.lists(st.text("ab", min_size=1, max_size=3), max_size=3))
def test_stops_cut_as_if_the_answer_came_in_one_piece(pieces: list[str], ends: list[str]) -> None:
    stops, sent = Stops(ends), ""
    for piece in pieces:
        sent += stops.feed(piece)
        if stops.met:
            break
    sent += stops.flush()
    whole = "".join(pieces)
    at = [whole.find(end) for end in ends if end in whole]
    # With pieces, the stop that is whole first counts; before it no other one is.
    if not at:
        assert (sent, stops.met) == (whole, False)
    else:
        assert stops.met
        assert whole.startswith(sent)
        assert not any(end in sent for end in ends)
        assert any(whole.startswith(sent + end) for end in ends)


def test_a_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "key"
    key = key_in(file)
    assert len(key) >= 32
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert key_in(file) == key
    assert key_in(tmp_path / "other") != key


@pytest.mark.parametrize(
    ("content", "mode", "why"),
    [
        ("a-key-of-many-letters", 0o644, "chmod 600"),
        ("a-key-of-many-letters", 0o620, "chmod 600"),
        ("short", 0o600, "16 or more"),
        ("", 0o600, "16 or more"),
        ("a-key-of-many-letters\nand-another", 0o600, "one line"),
        ("ä" * 20, 0o600, "plain characters"),
    ],
)
def test_a_key_that_others_know_or_guess_is_refused(
    tmp_path: Path, content: str, mode: int, why: str
) -> None:
    file = tmp_path / "key"
    file.write_text(content)
    file.chmod(mode)
    with pytest.raises(UsageError, match=why):
        key_in(file)


def test_a_key_file_that_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be made"):
        key_in(tmp_path / "none" / "key")
    with pytest.raises(UsageError, match=r"cannot be read|plain file"):
        key_in(tmp_path)


def test_a_gateway_is_found_while_it_runs_and_no_longer(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "gateway.json"
    where = Whereabouts(url="http://127.0.0.1:1", pid=os.getpid(), key_file="/k")
    assert whereabouts.find(file) is None
    with whereabouts.told(file, where) as is_first:
        assert is_first
        assert whereabouts.find(file) == where
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        with whereabouts.told(file, Whereabouts(url="http://127.0.0.1:2", pid=1)) as is_second:
            assert not is_second
        assert whereabouts.find(file) == where
    assert not file.exists()


def test_the_file_of_a_killed_gateway_counts_for_nothing(tmp_path: Path) -> None:
    file = tmp_path / "gateway.json"
    program = (
        "import sys, os, signal; from pathlib import Path\n"
        "from giaann_p2p.gateway.whereabouts import Whereabouts, told\n"
        "with told(Path(sys.argv[1]), Whereabouts(url='http://127.0.0.1:1', pid=os.getpid())):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, file], timeout=100, check=False)
    assert done.returncode == -9
    assert file.exists()
    assert whereabouts.find(file) is None
    with whereabouts.told(file, Whereabouts(url="http://127.0.0.1:3", pid=1)) as is_first:
        assert is_first


def test_rubbish_in_the_file_is_no_gateway(tmp_path: Path) -> None:
    file = tmp_path / "gateway.json"
    with whereabouts.told(file, Whereabouts(url="http://127.0.0.1:1", pid=1)):
        file.write_text("{")
        assert whereabouts.find(file) is None
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    assert whereabouts.find(link) is None


def test_nouns_are_found_among_many_by_how_they_begin() -> None:
    index = NounIndex(
        [(f"noun_{n:06}", n) for n in range(100_000)] + [("Civil War", 3), (" bee", 1)]
    )
    found = index.search("noun_0999", 3)
    assert [one.occurrences for one in found.found] == [99_999, 99_998, 99_997]
    assert found.of == 100
    assert index.search("civil w", 5).found[0].noun == "Civil War"
    assert index.search("bee", 5).found[0].noun == " bee"
    assert index.search("", 1).of == len(index) == 100_002
    assert index.search("x", 1).found == []


def test_streams_are_merged_and_one_error_ends_all() -> None:
    ended = list[int]()

    async def counting(number: int, end: int) -> AsyncGenerator[int, None]:
        try:
            for n in range(end):
                yield n
                await asyncio.sleep(0)
            if number == 9:
                raise ValueError("nine")
            if end > 5:
                await asyncio.Event().wait()
        finally:
            ended.append(number)

    async def play() -> None:
        found = [item async for item in merged([counting(0, 2), counting(1, 3)])]
        assert sorted(found) == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]
        with pytest.raises(ValueError, match="nine"):
            async for _ in merged([counting(9, 1), counting(7, 6)]):
                pass
        assert {9, 7} <= set(ended)
        hung = counting(8, 6).__anext__

        async def fail() -> int:
            raise ValueError("first")

        with pytest.raises(ValueError, match="first"):
            await gathered([hung(), fail()])

    asyncio.run(play())


def test_a_port_in_use_and_a_strange_address_are_told() -> None:
    with bound("127.0.0.1", 0) as door:
        port = door.getsockname()[1]
        with pytest.raises(UsageError, match=f"127.0.0.1:{port}: Address already in use"):
            bound("127.0.0.1", port)
    with pytest.raises(UsageError, match=r"cannot listen|no address"):
        bound("192.0.2.1", 0)


def test_a_bound_of_zero_is_refused() -> None:
    with pytest.raises(UsageError, match="prompts must be more than 0"):
        Limits(prompts=0)


def test_tokens_of_subwords_are_counted_by_their_tokeniser() -> None:
    assert traits_of("subwords").counter()("Hello wörld 2015") == 7
    assert traits_of("words").counter()("Bees, it's 5.") == 7


def test_turns_are_taken_in_order_and_given_back_whatever_happens() -> None:
    async def play() -> None:
        room, order, gates = 2, list[int](), [asyncio.Event() for _ in range(6)]
        turns = Turns(lambda: room)

        async def take(number: int) -> None:
            async with turns.turn(60.0):
                order.append(number)
                await gates[number].wait()

        tasks = []
        for number in range(5):
            tasks.append(asyncio.ensure_future(take(number)))
            await asyncio.sleep(0)
        assert (order, repr(turns)) == ([0, 1], "<Turns: 2 taken, 3 wait>")
        tasks[2].cancel()  # who waits may leave
        await asyncio.wait([tasks[2]])
        tasks[0].cancel()  # and who has a turn, too
        await asyncio.wait([tasks[0]])
        await asyncio.sleep(0)
        assert order == [0, 1, 3]
        with pytest.raises(Busy):
            async with turns.turn(0.01):
                pass
        gates[1].set()
        gates[3].set()
        gates[4].set()
        await asyncio.gather(*tasks[3:], tasks[1])
        assert order == [0, 1, 3, 4]
        assert repr(turns) == "<Turns: 0 taken, 0 wait>"
        async with turns.turn(60.0) as waited:
            assert waited < 60

    asyncio.run(play())


@pytest.mark.parametrize("looks_every", [0.001, 60.0])
def test_new_room_is_taken_before_any_turn_ends(
    monkeypatch: pytest.MonkeyPatch, looks_every: float
) -> None:
    monkeypatch.setattr("giaann_p2p.gateway.turns._LOOK_EVERY", looks_every)

    async def play() -> None:
        room, taken, over = 1, asyncio.Semaphore(0), asyncio.Event()
        turns = Turns(lambda: room)

        async def take() -> None:
            async with turns.turn(60.0):
                taken.release()
                await over.wait()

        tasks = [asyncio.ensure_future(take()) for _ in range(3)]
        await taken.acquire()
        assert repr(turns) == "<Turns: 1 taken, 2 wait>"
        room = 4
        if looks_every == 60.0:  # then whoever comes next finds the room
            tasks.append(asyncio.ensure_future(take()))
        for _ in tasks[1:]:
            await taken.acquire()
        over.set()
        await asyncio.gather(*tasks)

    asyncio.run(asyncio.wait_for(play(), 60))
