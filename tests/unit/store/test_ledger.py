"""Who has taken in what, against a dictionary of sets."""

import random

import numpy as np
import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.layout import Shards
from giaann_p2p.store.ledger import Ledger

SHARDS = 8
JOBS = [b"one job of many.", b"and another one."]


def shards(*numbers: int) -> Shards:
    return np.array(numbers, np.uint16)


def assert_like(ledger: Ledger, plain: dict[int, set[tuple[bytes, int]]]) -> None:
    assert ledger.shards.tolist() == sorted(plain)
    for number, wanted in plain.items():
        found = ledger.of(number)
        assert {(job, chunk) for job in found for chunk in found.of(job)} == wanted
        assert len(found) == len(wanted)


@pytest.mark.parametrize("seed", range(30))
def test_a_ledger_is_a_dictionary_of_sets(seed: int) -> None:
    rng = random.Random(seed)
    ledger, plain = Ledger(SHARDS), dict[int, set[tuple[bytes, int]]]()
    seen = dict[int, tuple[Applied, int]]()
    for _ in range(200):
        number, job, chunk = rng.randrange(SHARDS), rng.choice(JOBS), rng.randrange(4)
        deed = rng.random()
        if deed < 0.1:
            ledger.hold(number, Applied())
            plain[number] = set()
        elif deed < 0.15:
            ledger.drop(number)
            plain.pop(number, None)
        elif deed < 0.2 and plain:
            taken = rng.choice(list(plain))
            ledger.hold(number, ledger.of(taken))
            plain[number] = plain[taken].copy()
        elif plain:
            some = sorted(rng.sample(list(plain), rng.randrange(1, len(plain) + 1)))
            lacking = [n for n in some if (job, chunk) not in plain[n]]
            assert ledger.lacking(job, chunk, shards(*some)).tolist() == lacking
            ledger.add(job, chunk, shards(*some))
            for n in some:
                plain[n].add((job, chunk))
        assert_like(ledger, plain)
        assert ledger.some([*plain, -1, SHARDS]) == {n: ledger.of(n) for n in plain}
        for n, (before, size) in seen.items():
            assert len(before) == size, f"what was shown of {n} has changed"
        seen = {n: (ledger.of(n), len(ledger.of(n))) for n in plain}


def test_shards_with_the_same_chunks_share_one_set() -> None:
    ledger = Ledger(SHARDS)
    for number in range(SHARDS):
        ledger.hold(number, Applied())
    everywhere = shards(*range(SHARDS))
    for chunk in range(1000):
        ledger.add(JOBS[0], chunk, everywhere)
    assert repr(ledger) == "<Ledger: 8 shards, 1 sets>"
    small = ledger.nbytes
    for number in range(SHARDS):  # they part, and come together again
        ledger.add(JOBS[1], 7, shards(number))
        assert repr(ledger) == f"<Ledger: 8 shards, {1 if number == SHARDS - 1 else 2} sets>"
    assert ledger.nbytes < small + 1000
    assert len({id(one) for one in ledger.some(range(SHARDS)).values()}) == 1


def test_what_is_not_held_is_said() -> None:
    ledger = Ledger(SHARDS)
    ledger.hold(3, Applied())
    assert 3 in ledger
    assert 4 not in ledger
    assert -5 not in ledger
    assert SHARDS not in ledger
    with pytest.raises(UsageError, match="shard 4 is not held here"):
        ledger.lacking(JOBS[0], 1, shards(3, 4))
    with pytest.raises(UsageError, match="shard 300 is not held here"):
        ledger.lacking(JOBS[0], 1, shards(3, 300))
    with pytest.raises(UsageError, match="shard 4 is not held here"):
        ledger.of(4)
