"""What a schedule is made of: chunks, leases and the roster, against plain sets."""

import random

import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.swarm.training.chunk_history import ChunkHistory
from giaann_p2p.swarm.training.chunks import Chunks, ChunkState, Event
from giaann_p2p.swarm.training.lease_settings import LeaseSettings
from giaann_p2p.swarm.training.leases import Held, Leases
from giaann_p2p.swarm.training.roster import Roster

WORKERS = [b"a", b"b", b"c"]


def test_chunks_move_as_the_table_says() -> None:
    chunks = Chunks([1, 9])
    assert list(chunks.grow(3)) == [0, 2]
    chunks.move(0, Event.LEASE)
    chunks.move(2, Event.GIVE_UP)
    assert repr(chunks) == "<Chunks: 0 waiting, 1 leased, 2 committed, 1 failed, more to come>"
    chunks.end()
    before = chunks.settled
    chunks.move(0, Event.COMMIT)
    assert (before, chunks.settled) == (False, True)
    assert repr(chunks) == "<Chunks: 0 waiting, 0 leased, 3 committed, 1 failed>"
    with pytest.raises(UsageError, match="chunk 0 is committed: it cannot be leased"):
        chunks.move(0, Event.LEASE)
    kept = chunks.all(ChunkState.COMMITTED)
    kept.add(2)
    assert chunks.state(2) is ChunkState.FAILED


@pytest.mark.parametrize("seed", range(20))
def test_leases_are_a_set_of_pairs(seed: int) -> None:
    rng, leases, plain = random.Random(seed), Leases(), dict[tuple[bytes, int], float]()
    for step in range(200):
        pair = rng.choice(WORKERS), rng.randrange(4)
        if pair in plain:
            leases.end(*pair)
            del plain[pair]
        else:
            plain[pair] = float(step)
            leases.begin(*pair, Held(step, step + 10.0))
        assert len(leases) == len(plain)
        assert set(leases.chunks) == {chunk for _, chunk in plain}
        assert sorted(leases.ends) == [begun + 10 for begun in plain.values()]
        assert set(leases.lapsed(step)) == {p for p, begun in plain.items() if begun + 10 <= step}
        for chunk in range(4):
            holders = [worker for worker, its in plain if its == chunk]
            assert list(leases.holders(chunk)) == holders
            assert (chunk in leases) == bool(holders)
            assert [leases.of(worker, chunk) is not None for worker in WORKERS] == [
                worker in holders for worker in WORKERS
            ]
        alone = {c: w for w, c in plain if len(leases.holders(c)) == 1}
        assert dict(leases.single(5.0)) == {plain[w, c] + 5: c for c, w in alone.items()}
    assert repr(leases) == f"<Leases: {len(leases)} of {len(leases.chunks)} chunks>"


def test_who_got_a_chunk_goes_to_the_end_of_the_queue() -> None:
    roster = Roster()
    for worker in WORKERS:
        roster.join(worker, 2, 0.0)
        roster.hear(worker, 0.0)
    roster.take(b"a", 1)
    assert list(roster.idle) == [b"b", b"c", b"a"]
    roster.take(b"a", 2)
    roster.leave(b"b")
    assert list(roster.idle) == [b"c"]
    assert repr(roster) == "<Roster: 2 workers, 1 in the queue>"
    roster[b"a"].silent = True
    roster.give_back(b"a", 1)
    assert list(roster.idle) == list(roster.awake()) == [b"c"]
    roster.hear(b"a", 1.0)
    assert list(roster.idle) == [b"c", b"a"]


def test_a_verdict_has_reasons() -> None:
    pace, past = LeaseSettings(failures=2, losses=3, rest=1), ChunkHistory()
    past.fail(b"a", "one", 0.0, pace)
    past.losers |= {b"x", b"y"}
    assert past.verdict(pace) == ()
    past.fail(b"a", "two", 10.0, pace)
    assert past.rests_until == 12.0
    assert past.verdict(pace) == ()
    past.losers.add(b"z")
    lost = "3 workers fell silent or left while learning it"
    assert past.verdict(pace) == ("one", "two", lost)
    past.fail(b"b", "three", 20.0, pace)
    assert past.verdict(pace) == ("one", "two", "three")
