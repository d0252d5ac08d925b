"""Rows for prompts: read together, read ahead, read anew, and never later for that."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from giaann_p2p.model.rows import Answer, Name, Neuron, Question, Row, empty_row
from giaann_p2p.net import clock
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.node.reading.row_cache import Bill, RowCache
from giaann_p2p.swarm.reading.known_rows import Known

N = [Neuron(number, 0) for number in range(1000)]


class Peers:
    """Whoever has rows: tells what was asked for, after a while."""

    def __init__(self) -> None:
        self.reads: list[list[int]] = []
        self.known: list[dict[Neuron, Row]] = []
        self.unchanged, self.longer = False, 0
        """Whether known rows are still the same."""
        self.takes = 0.010
        self.lost: set[int] = set()
        """Neurons that nobody tells: a read of them takes 15 s, and is in vain."""
        self.never: set[int] = set()
        """Neurons that never occurred."""
        self.received = 0
        self.count = 0

    async def read(self, neurons: Sequence[Neuron], known: Known) -> Answer:
        self.reads.append([neuron.concept for neuron in neurons])
        self.known.append({**known})
        if self.lost & {neuron.concept for neuron in neurons}:
            await asyncio.sleep(15)
            raise Unreachable("in vain")
        await asyncio.sleep(self.takes)
        self.received += 100 * len(neurons)
        self.count += 1
        if self.unchanged:
            return [known.get(n) or longer(row(n, self.count), self.longer) for n in neurons]
        return [None if n.concept in self.never else row(n, self.count) for n in neurons]


def row(neuron: Neuron, count: int) -> Row:
    return replace(empty_row(neuron, Name(f"noun{neuron.concept}", None)), count=count)


def longer(told: Row, count: int) -> Row:
    """Return a row with so many connections more."""
    return replace(told, strength=np.ones(count, np.int64))


def play(story: Callable[[Peers, RowCache], Awaitable[None]], most_bytes: int = 1 << 20) -> None:
    async def main() -> None:
        peers = Peers()
        cache = RowCache(peers.read, most_bytes, received=lambda: peers.received)
        await story(peers, cache)
        await cache.close()
        assert len(asyncio.all_tasks()) == 1

    clock.run(main())


def numbers(rows: Answer) -> list[int | None]:
    return [found and found.neuron.concept for found in rows]


async def took(deed: Awaitable[object]) -> float:
    began = asyncio.get_running_loop().time()
    await deed
    return round(asyncio.get_running_loop().time() - began, 6)


def test_what_is_asked_for_in_one_turn_is_one_read() -> None:
    async def story(peers: Peers, cache: RowCache) -> None:
        questions = [Question([N[1], N[2]]), Question([N[2], N[3], N[3]]), Question([N[4]])]
        found = await asyncio.gather(*map(cache.rows, questions))
        assert list(map(numbers, found)) == [[1, 2], [2, 3, 3], [4]]
        assert peers.reads == [[1, 2, 3, 4]]
        assert (cache.counters.asked, cache.counters.shared, cache.counters.reads) == (5, 1, 1)

    play(story)


def test_what_is_on_its_way_is_waited_for_and_what_is_here_is_not() -> None:
    async def story(peers: Peers, cache: RowCache) -> None:
        first = asyncio.ensure_future(cache.rows(Question([N[1]])))
        await asyncio.sleep(0.004)
        assert await took(cache.rows(Question([N[1], N[2]]))) == 0.010
        assert await took(first) == 0
        assert peers.reads == [[1], [2]]
        bill = Bill()
        assert await took(cache.rows(Question([N[1], N[2]]), bill)) == 0
        assert (bill.rows, bill.kept, bill.trips, bill.nbytes) == (2, 2, 0, 0)

    play(story)


def test_what_is_old_is_read_anew_but_for_its_name() -> None:
    async def story(peers: Peers, cache: RowCache) -> None:
        peers.never = {2}
        await cache.rows(Question([N[1], N[2]]))
        await asyncio.sleep(0.98)
        assert cache.has(Question([N[1], N[2]]))
        await asyncio.sleep(0.02)
        assert not cache.has(Question([N[1]]))
        assert await took(cache.rows(Question([N[1]], names_only=True))) == 0
        assert await took(cache.rows(Question([N[2]], names_only=True))) > 0  # it may be there now
        (found,) = await cache.rows(Question([N[1]]))
        assert found is not None
        assert found.count == 3
        assert cache.counters.renewed == 2
        assert peers.reads == [[1, 2], [2], [1]]

    play(story)


def test_a_guess_that_was_right_is_at_hand() -> None:
    async def story(peers: Peers, cache: RowCache) -> None:
        cache.ahead([N[5], N[6], N[5]])
        await cache.rows(Question([N[1]]))
        await asyncio.sleep(0.02)
        assert peers.reads == [[1], [5, 6]]  # what is asked for goes first
        assert await took(cache.rows(Question([N[5]]))) == 0
        assert await took(cache.rows(Question([N[5]]))) == 0
        counters = cache.counters
        assert (counters.guesses, counters.guessed_right) == (2, 1)
        cache.ahead([N[5], N[6]])  # both are here
        await asyncio.sleep(0.02)
        assert len(peers.reads) == 2

    play(story)


def test_a_guess_on_its_way_or_about_to_be_is_waited_for() -> None:
    async def story(peers: Peers, cache: RowCache) -> None:
        bill = Bill()
        cache.ahead([N[5], N[6]], bill)
        await cache.rows(Question([N[6], N[8]]), bill)
        assert peers.reads == [[8], [5, 6]]
        assert (bill.nbytes, bill.trips) == (300, 1)
        assert (cache.counters.reads, cache.counters.shared) == (2, 1)
        cache.ahead([N[7]])
        await asyncio.sleep(0.006)
        assert await took(cache.rows(Question([N[7]]))) == 0.004
        assert cache.counters.guesses == 3
        assert cache.counters.guessed_right == 2
        await asyncio.sleep(0.1)
        assert cache.wasted == 0

    play(story)


def test_a_slow_read_of_guesses_that_were_asked_for_before_it_was_sent_is_waited_for() -> None:
    async def story(peers: Peers, cache: RowCache) -> None:
        peers.takes = 0.3
        cache.ahead([N[5], N[6]])
        assert await took(cache.rows(Question([N[5]]))) == 0.3
        assert peers.reads == [[5, 6]]
        assert cache.counters.alone == 0
        cache.ahead([N[7], N[8]])
        await asyncio.sleep(0.05)
        assert await took(cache.rows(Question([N[7]]))) == 0.25  # its own read would take longer
        assert peers.reads == [[5, 6], [7, 8], [7]]

    play(story)


def test_a_guess_that_is_stuck_delays_nobody() -> None:
    async def story(peers: Peers, cache: RowCache) -> None:
        peers.lost = {9}
        cache.ahead([N[9], N[5]])
        await asyncio.sleep(0.05)
        assert await took(cache.rows(Question([N[5]]))) == 0.110
        assert cache.counters.alone == 1

    play(story)


def test_a_shard_that_is_lost_stops_only_who_needs_it() -> None:
    async def story(peers: Peers, cache: RowCache) -> None:
        peers.lost = {9}
        lost = asyncio.ensure_future(cache.rows(Question([N[9]])))
        others = [asyncio.ensure_future(cache.rows(Question([N[n]]))) for n in (1, 2)]
        assert await took(asyncio.gather(*others)) == 1.010
        assert await took(cache.rows(Question([N[3]]))) == 0.010
        with pytest.raises(Unreachable, match="in vain"):
            await lost

    play(story)


def test_an_error_is_told_to_all_who_wait() -> None:
    async def story(peers: Peers, cache: RowCache) -> None:
        async def refuses(neurons: Sequence[Neuron], known: Known) -> Answer:
            raise Unreachable("nobody is there")

        cache._read = refuses
        found = await asyncio.gather(
            *(cache.rows(Question([N[n]])) for n in (1, 1, 2)), return_exceptions=True
        )
        assert [str(error) for error in found] == ["nobody is there"] * 3
        cache.ahead([N[5]])  # nobody asks for it, so nobody is told
        await asyncio.sleep(1)

    play(story)


def test_who_waits_at_the_end_is_told() -> None:
    async def story(peers: Peers, cache: RowCache) -> None:
        waits = asyncio.ensure_future(cache.rows(Question([N[1]])))
        await asyncio.sleep(0.001)
        await cache.close()
        with pytest.raises(Unreachable, match="is ending"):
            await waits

    play(story)


def test_guesses_are_bounded() -> None:
    async def story(peers: Peers, cache: RowCache) -> None:
        cache.ahead(N[:300])
        await asyncio.sleep(0.02)
        assert len(peers.reads[0]) == 256
        cache.ahead(N[300:310])
        await asyncio.sleep(0.02)
        assert len(peers.reads[1]) == 10
        assert repr(cache).endswith("0 coming>")

    play(story)


def test_guesses_of_cut_columns_count_with_each_part() -> None:
    async def story(peers: Peers, cache: RowCache) -> None:
        cache._parts_of = lambda neuron: {1: 1000, 2: 200}.get(neuron.concept, 30)
        cache.ahead([N[2], N[1], N[3], N[4]])
        await asyncio.sleep(0.02)
        cache.ahead([N[1], N[5]])
        await asyncio.sleep(0.02)
        assert peers.reads == [[2, 3], [1]]

    play(story)


def test_bytes_are_charged_to_who_asked_first_and_all_are_charged() -> None:
    async def story(peers: Peers, cache: RowCache) -> None:
        bills = [Bill() for _ in range(3)]
        await asyncio.gather(
            cache.rows(Question([N[1], N[2]]), bills[0]),
            cache.rows(Question([N[2], N[3]]), bills[1]),
            cache.rows(Question([N[1]]), bills[2]),
        )
        assert [bill.nbytes for bill in bills] == [200, 100, 0]
        assert [bill.trips for bill in bills] == [1, 1, 1]
        cache.ahead([N[7]], bills[2])
        await asyncio.sleep(0.1)
        assert bills[2].nbytes == 100

    play(story)


def test_rows_that_are_too_old_are_named_to_who_is_asked_for_them_again() -> None:
    async def story(peers: Peers, cache: RowCache) -> None:
        peers.never = {2}
        first = await cache.rows(Question([N[1], N[2]]))
        await asyncio.sleep(1.5)
        peers.unchanged = True
        again = await cache.rows(Question([N[1], N[3]]))
        assert peers.known == [{}, {N[1]: first[0]}]  # nothing is known of a row that was not
        assert again[0] is first[0]
        assert await cache.rows(Question([N[1]])) == again[:1]
        assert len(peers.reads) == 2  # it is as fresh as if it had been sent
        await asyncio.sleep(1.5)
        cache.ahead([N[3]])
        await asyncio.sleep(0.1)
        assert peers.known[2] == {N[3]: again[1]}

    play(story)


def test_a_row_that_was_confirmed_costs_as_little_as_one_that_is_not() -> None:
    async def story(peers: Peers, cache: RowCache) -> None:
        peers.unchanged, peers.longer = True, 1000
        await cache.rows(Question([N[1]]))
        await asyncio.sleep(1.5)
        known, new = Bill(), Bill()
        await asyncio.gather(cache.rows(Question([N[1]]), known), cache.rows(Question([N[2]]), new))
        assert known.nbytes + new.nbytes in (199, 200)  # it is rounded
        assert known.nbytes < 30

    play(story)


def test_it_works_without_room_for_a_single_row() -> None:
    async def story(peers: Peers, cache: RowCache) -> None:
        cache.ahead([N[3]])
        assert numbers(await cache.rows(Question([N[1], N[2]]))) == [1, 2]
        assert numbers(await cache.rows(Question([N[1], N[3]]))) == [1, 3]

    play(story, most_bytes=10)
