"""The board in memory: late, lost, parted, and never tidier than a real one."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from giaann_p2p.net.board import Board
from giaann_p2p.net.clock import run
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.net.memory_board import MemoryBoard

A, B = b"a" * 32, b"b" * 32


def play(story: Callable[[MemoryBoard, Board, Board], Awaitable[None]]) -> None:
    async def main() -> None:
        board = MemoryBoard(random.Random(0))
        await story(board, board.view(A), board.view(B))

    run(main())


def test_what_is_posted_is_seen_until_its_time_is_up() -> None:
    async def story(board: MemoryBoard, a: Board, b: Board) -> None:
        assert await b.look("storage") == []
        await a.post("storage", b"old", 20)
        await a.post("storage", b"new", 30)
        await a.post("compute", b"other", 30)
        assert await b.look("storage") == [[b"old", b"new"]]
        assert await a.look("compute") == [[b"other"]]
        await asyncio.sleep(25)
        assert await b.look("storage") == [[b"new"]]
        await asyncio.sleep(25)
        assert await b.look("storage") == []
        assert (board.posts, board.looks) == (3, 5)
        await b.post("storage", b"last", 1)
        assert repr(board) == "<MemoryBoard: 1 records, 0 peers cannot see it>"

    play(story)


def test_who_has_lost_it_is_told_so_until_it_is_found() -> None:
    async def story(board: MemoryBoard, a: Board, b: Board) -> None:
        board.lose(A)
        for deed in (a.look("storage"), a.post("storage", b"x", 30)):
            with pytest.raises(Unreachable, match="nobody who keeps the peer directory"):
                await deed
        assert await b.look("storage") == []
        board.lose(A, lost=False)
        await a.post("storage", b"x", 30)
        assert await b.look("storage") == [[b"x"]]

    play(story)


def test_those_who_are_parted_see_nothing_of_each_other() -> None:
    async def story(board: MemoryBoard, a: Board, b: Board) -> None:
        board.part(A, B)
        await a.post("storage", b"x", 30)
        assert await b.look("storage") == []
        assert await a.look("storage") == [[b"x"]]
        board.part(B, A, parted=False)
        assert await b.look("storage") == [[b"x"]]

    play(story)


def test_it_takes_its_time() -> None:
    async def story(board: MemoryBoard, a: Board, b: Board) -> None:
        loop = asyncio.get_running_loop()
        board.latency = (2.0, 2.0)
        await a.look("storage")
        assert loop.time() == pytest.approx(2)
        post = asyncio.ensure_future(a.post("storage", b"x", 30))
        await asyncio.sleep(1)
        assert board.seen(B, "storage") == []
        await post
        assert board.seen(B, "storage") == [[b"x"]]

    play(story)
