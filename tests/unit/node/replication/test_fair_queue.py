"""Work of several peers: how much runs at once, and whose turn it is."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from giaann_p2p.node.replication.fair_queue import FairQueue


class Workshop:
    """A queue, and work that goes on until it is told to end."""

    def __init__(self, most: int) -> None:
        self.queue = FairQueue[str](most)
        self.running: dict[str, asyncio.Future[str]] = {}
        self.begun: list[str] = []

    def begin(self, peer: bytes, name: str) -> asyncio.Future[str]:
        def work() -> asyncio.Future[str]:
            self.begun.append(name)
            self.running[name] = asyncio.get_running_loop().create_future()
            return self.running[name]

        return self.queue.begin(peer, work)

    async def end(self, name: str) -> None:
        self.running.pop(name).set_result(f"{name} done")
        await asyncio.sleep(0)


def play(story: Callable[[Workshop], Awaitable[None]], most: int = 1) -> None:
    async def main() -> None:
        await story(Workshop(most))

    asyncio.run(main())


def test_peers_take_turns_and_each_ones_work_keeps_its_order() -> None:
    async def story(shop: Workshop) -> None:
        results = [shop.begin(b"much", f"much {n}") for n in range(4)]
        results += [
            shop.begin(b"little", "little"),
            *(shop.begin(b"some", f"some {n}") for n in (0, 1)),
        ]
        assert repr(shop.queue) == "<FairQueue: work of 3 peers waits>"
        for _ in results:
            await shop.end(shop.begun[-1])
        order = ["much 0", "much 1", "little", "some 0", "much 2", "some 1", "much 3"]
        assert shop.begun == order
        names = ["much 0", "much 1", "much 2", "much 3", "little", "some 0", "some 1"]
        assert await asyncio.gather(*results) == [f"{name} done" for name in names]
        assert repr(shop.queue) == "<FairQueue: work of 0 peers waits>"

    play(story)


def test_as_much_runs_at_once_as_may() -> None:
    async def story(shop: Workshop) -> None:
        for n in range(4):
            shop.begin(b"one", str(n))
        assert shop.begun == ["0", "1"]
        await shop.end("1")
        assert shop.begun == ["0", "1", "2"]
        await shop.end("0")
        await shop.end("2")
        assert shop.begun == ["0", "1", "2", "3"]
        await shop.end("3")
        shop.begin(b"one", "4")
        assert shop.begun[-1] == "4"

    play(story, 2)


def test_work_that_fails_or_is_cancelled_keeps_nobody_waiting() -> None:
    async def story(shop: Workshop) -> None:
        shop.begin(b"one", "first")
        results = [
            shop.begin(b"one", name) for name in ("fails", "is cancelled", "unwanted", "last")
        ]
        await shop.end("first")
        shop.running["fails"].set_exception(ValueError("no"))
        await asyncio.sleep(0)
        shop.running["is cancelled"].cancel()
        results[2].cancel()
        await asyncio.sleep(0)
        assert shop.begun == ["first", "fails", "is cancelled", "last"]
        await shop.end("last")
        with pytest.raises(ValueError, match="no"):
            await results[0]
        assert [result.cancelled() for result in results] == [False, True, True, False]
        assert await results[3] == "last done"

    play(story)


def test_work_whose_asker_goes_while_it_runs_ends_quietly() -> None:
    async def story(shop: Workshop) -> None:
        shop.begin(b"one", "first")
        gone = shop.begin(b"one", "second")
        await shop.end("first")
        gone.cancel()
        await shop.end("second")
        shop.begin(b"one", "third")
        assert shop.begun[-1] == "third"

    play(story)


def test_work_that_cannot_begin_any_more_says_so() -> None:
    def ended() -> asyncio.Future[str]:
        raise RuntimeError("cannot schedule new futures after shutdown")

    async def story(shop: Workshop) -> None:
        shop.begin(b"one", "first")
        result, other = shop.queue.begin(b"one", ended), shop.begin(b"other", "other")
        await shop.end("first")
        with pytest.raises(RuntimeError, match="after shutdown"):
            await result
        await shop.end("other")
        assert await other == "other done"
        with pytest.raises(RuntimeError, match="after shutdown"):
            shop.queue.begin(b"one", ended)
        assert shop.begin(b"one", "last") is shop.running["last"]

    play(story)
