"""What others brought, in turn."""

import random

import pytest

from giaann_p2p.node.members.fair_merge import FairMerge


@pytest.mark.parametrize("seed", range(20))
def test_each_record_comes_once_and_nobodys_much_later_than_others(seed: int) -> None:
    chance = random.Random(seed)
    brought = [
        [bytes([chance.randrange(50)]) for _ in range(chance.choice([0, 3, 40]))] for _ in range(6)
    ]
    heard = list(FairMerge(brought))
    records = [record for _, record in heard]
    assert len(records) == len(set(records))
    assert set(records) == {record for some in brought for record in some}
    for who, some in enumerate(brought):
        assert [record for by, record in heard if by == who] == sorted(
            {record for by, record in heard if by == who}, key=some.index
        )
        for rank, record in enumerate(some):  # nobody has had more than a turn more before it
            assert records.index(record) <= (rank + 1) * len(brought)


def test_a_flood_leaves_others_their_turns() -> None:
    flood = [number.to_bytes(2, "big") for number in range(1000)]
    heard = [record for _, record in FairMerge([flood, [b"a", b"b"], [b"b", b"c"]])]
    assert heard[:6] == [flood[0], b"a", b"b", flood[1], b"c", flood[2]]


def test_who_is_silenced_is_heard_no_more() -> None:
    heard = FairMerge([[b"a", b"b"], [b"lie", b"more"], [b"c", b"more"]])
    assert repr(heard) == "<FairMerge of 3 nodes>"
    told = []
    for who, record in heard:
        told.append((who, record))
        if record == b"lie":
            heard.silence(who)
            heard.silence(who)
    assert told == [(0, b"a"), (1, b"lie"), (2, b"c"), (0, b"b"), (2, b"more")]
