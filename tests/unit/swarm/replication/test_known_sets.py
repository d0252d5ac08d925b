"""A loss is told as one, and only a loss."""

import msgspec
import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.replication.known_sets import (
    DAY,
    KEEPS,
    NOTE,
    NOTED_EVERY,
    NOTHING,
    KnownSets,
)
from tests.helpers_swarm import NOW, applied

SHARDS = 8


def _known() -> KnownSets:
    known = KnownSets()
    known.saw(3, applied(1, 2), 100, NOW)
    known.saw(5, applied(1), 10, NOW + 1)
    return known


def test_what_is_there_is_not_missing() -> None:
    known = _known()
    known.compare({3: [applied(1, 2, 3)], 5: [applied(1)]}, NOW)
    assert known.missing is NOTHING
    assert known.changes == 0


def test_what_several_hold_together_is_not_missing() -> None:
    known = _known()
    known.compare({3: [applied(1), applied(2)]}, NOW)
    assert known.missing is NOTHING


def test_what_nobody_has_is_missing_until_it_is_back() -> None:
    known = _known()
    known.compare({3: [applied(2)], 5: []}, NOW)
    assert known.missing.shards.tolist() == [3, 5]
    assert (known.missing.connections, known.missing.seen) == (110, NOW + 1)
    known.compare({3: [applied(1, 2)], 5: [applied(1)]}, NOW)
    assert known.missing is NOTHING
    assert known.changes == 2


def test_of_a_shard_that_cannot_be_judged_nothing_is_said() -> None:
    known = _known()
    known.compare({}, NOW)
    assert known.missing is NOTHING


def test_less_than_before_is_no_news() -> None:
    known = _known()
    known.saw(3, Applied(), 0, NOW + 5)
    known.compare({3: [Applied()]}, NOW + 5)
    assert known.missing.shards.tolist() == [3]


def test_what_was_long_ago_is_forgotten() -> None:
    known = _known()
    known.compare({3: [], 5: []}, NOW + KEEPS + 2)
    assert known.missing is NOTHING
    assert [*known.of()] == []


def _restored(data: bytes, now: float = NOW + 60) -> KnownSets:
    known = KnownSets()
    known.restore(data, SHARDS, SHARDS, now)
    return known


def test_what_was_known_is_known_after_a_restart() -> None:
    again = _restored(_known().packed())
    assert sorted(again.of()) == [3, 5]
    again.compare({3: [applied(2)], 5: [applied(1)]}, NOW + 60)
    assert again.missing.shards.tolist() == [3]
    assert (again.missing.connections, again.missing.seen) == (100, NOW)


def test_a_note_is_written_for_what_is_new_and_seldom() -> None:
    known = _known()
    assert known.note(NOW) == known.note(NOW + NOTED_EVERY - 1) == []
    (note,) = known.note(noted := NOW + NOTED_EVERY)
    assert (note.key, note.value) == (NOTE, known.packed())
    known.saw(3, applied(1, 2), 100, noted + 60)
    assert known.note(noted + NOTED_EVERY) == []  # nothing is new
    known.saw(3, applied(1, 2, 3), 150, noted + 70)
    assert known.note(noted + NOTED_EVERY - 1) == []
    assert len(known.note(noted + NOTED_EVERY)) == 1
    assert known.note(noted + DAY) == []
    assert len(known.note(noted + NOTED_EVERY + DAY)) == 1  # for the time when it was seen


def test_who_knows_nothing_writes_no_note() -> None:
    known = KnownSets()
    known.saw(3, Applied(), 0, NOW)
    assert known.note(NOW) == known.note(NOW + DAY) == []


def test_a_note_is_bounded_and_keeps_what_most_shards_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = _known()
    known.saw(6, applied(1, 2), 7, NOW)
    monkeypatch.setattr(
        "giaann_p2p.swarm.replication.known_sets.MOST_BYTES", len(applied(1, 2).to_bytes())
    )
    assert sorted(_restored(known.packed()).of()) == [3, 6]


@pytest.mark.parametrize(
    "found",
    [
        b"",
        b"\xc1",
        b"\x91\x92\xa1a\x90",
        msgspec.msgpack.encode([(applied(1).to_bytes()[:-3], [(3, 1, 1)])]),
        msgspec.msgpack.encode([(applied(1).to_bytes(), [(3, 1, -1)])]),
        msgspec.msgpack.encode([(applied(1).to_bytes(), [(3, 1 << 50, 1)])]),
    ],
)
def test_a_note_that_cannot_be_read_says_so_and_changes_nothing(found: bytes) -> None:
    known = _known()
    with pytest.raises(UsageError, match="note of each shard's known chunks"):
        known.restore(found, SHARDS, SHARDS, NOW)
    assert known.packed() == _known().packed()


def test_no_note_speaks_of_shards_that_there_are_not_or_of_the_future() -> None:
    note = [(applied(1).to_bytes(), [(3, 1, int(NOW) + 999), (SHARDS, 1, 1)])]
    again = _restored(msgspec.msgpack.encode(note), NOW)
    assert [*again.of()] == [3]
    again.compare({3: []}, NOW)
    assert again.missing.seen == NOW
