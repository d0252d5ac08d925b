"""Sets of chunks are compared by parts: what is asked, what is sent, and what it means."""

import random
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from giaann_p2p.errors import MessageError
from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.replication import set_comparison
from giaann_p2p.swarm.replication.peer_reports import PeerReport
from giaann_p2p.swarm.replication.set_comparison import (
    about,
    answer_to,
    next_by_parts,
    question_of,
    words_of,
)
from giaann_p2p.swarm.wire.messages import (
    MANY_JOBS,
    MOST_IN_PARTS,
    Compare,
    Compared,
    decode,
    encode,
)
from giaann_p2p.swarm.wire.replica import ReplicaState
from tests.helpers_swarm import OTHER_JOB, applied

SHARDS = 64
JOBS = [random.Random(number).randbytes(16) for number in range(2000)]


def of_jobs(count: int, *more: tuple[int, int]) -> Applied:
    """Return a set of the first chunk of so many jobs, and of further chunks."""
    found = Applied({job: BitMap([0]) for job in JOBS[:count]})
    for job, chunk in more:
        found = found.plus(JOBS[job], chunk)
    return found


def told(
    mine: dict[int, Applied], theirs: dict[int, Applied], shards: Iterable[int] = ()
) -> tuple[dict[int, Applied], Compare, Compared]:
    """Return the sets that a comparison tells, with the question and the answer, as they travel."""
    question = decode(encode(question_of(mine, SHARDS, shards)))
    assert isinstance(question, Compare)
    answer = answer_to(question, list(mine), theirs, lambda _: ReplicaState.READY)
    answer = decode(encode(answer))  # type: ignore[assignment]
    words = words_of(answer, list(mine), mine, 1.0, question.parts)
    return {shard: word.chunks for shard, word in words.items()}, question, answer


def test_of_large_sets_only_the_parts_that_differ_travel() -> None:
    mine = dict.fromkeys(range(3), of_jobs(1000, (3, 1), (4, 1)))
    theirs = dict.fromkeys(range(3), of_jobs(1000, (4, 2), (1500, 0)))
    words, question, answer = told(mine, theirs)
    assert (words, question.parts, answer.which) == ({}, [], [-2, -2, -2])
    words, question, answer = told(mine, theirs, range(3))
    assert words == theirs
    assert answer.which == [0, 0, 0]
    assert words[0] is words[1]  # shards with equal sets go on sharing one
    assert 4096 < len(encode(question)) < 4300
    assert len(encode(answer)) < 1500 < 39_000 < len(theirs[0].to_bytes())


def test_equal_sets_need_neither_parts_nor_sets() -> None:
    one = of_jobs(1000)
    for shards in ((), (5,)):
        words, _, answer = told({5: one}, {5: of_jobs(1000)}, shards)
        assert words[5] is one
        assert answer == Compared(b"r", [-1], [])


def test_who_has_no_large_set_gets_all_parts_of_one() -> None:
    for mine in (Applied(), of_jobs(MANY_JOBS)):
        theirs = {0: of_jobs(MANY_JOBS + 1)}
        words, _, answer = told({0: mine}, theirs)
        assert (words, answer.which) == ({}, [-2])
        words, _, _ = told({0: mine}, theirs, [0])
        assert words == theirs


def test_small_sets_are_sent_whole_at_once() -> None:
    words, question, answer = told({0: of_jobs(1000)}, {0: of_jobs(MANY_JOBS)})
    assert question.parts == answer.parts == []
    assert words == {0: of_jobs(MANY_JOBS)}


def test_who_knows_no_parts_gets_all_sets_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_comparison, "_MOST_ANSWERED", 1)
    theirs = {0: of_jobs(1000), 1: of_jobs(1001)}
    question = Compare(question_of(dict.fromkeys(theirs, Applied()), SHARDS, ()).shards, [b""] * 2)
    answer = answer_to(question, [0, 1], theirs, lambda _: ReplicaState.READY)
    assert answer == Compared(b"rr", [0, 1], [one.to_bytes() for one in theirs.values()])


def test_large_sets_that_differ_are_compared_by_parts_next() -> None:
    large, small = of_jobs(MANY_JOBS + 1), of_jobs(MANY_JOBS)
    mine = {0: large, 1: small, 2: large, 3: small, 4: large}
    words = _reports({0: small, 1: large, 2: large, 3: of_jobs(2)})
    words[4] = PeerReport(ReplicaState.ABSENT, Applied(), 0.0)
    assert next_by_parts(mine, words) == [0, 1]


def test_a_question_has_the_parts_of_so_many_sets_and_the_others_wait() -> None:
    many = MOST_IN_PARTS + 2
    mine = {shard: of_jobs(300, (shard, 5)) for shard in range(many)} | {many: of_jobs(3)}
    theirs = dict.fromkeys(range(many), of_jobs(301)) | {many: of_jobs(4)}
    words, _, _ = told(mine, theirs)
    assert words == {many: of_jobs(4)}  # which are few
    words, question, answer = told(mine, theirs, range(many))
    assert question.parts == [mine[shard].parts for shard in range(MOST_IN_PARTS)]
    assert len(encode(answer)) < 9000 < len(theirs[0].to_bytes())
    assert theirs.keys() - words.keys() == {many - 2, many - 1}


@pytest.mark.parametrize(
    ("limit", "value", "most"),
    [("MOST_JOBS", 700, 2), ("_MOST_ANSWERED", 1, 1), ("_MOST_JOINED", 3000, 11)],
)
def test_what_does_not_fit_into_an_answer_comes_later(
    limit: str, value: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(set_comparison, limit, value)
    mine: dict[int, Applied] = dict.fromkeys(range(40), Applied())
    theirs = {shard: of_jobs(300, (shard, 5)) for shard in range(40)}  # each of 11 kB
    found: dict[int, Applied] = {}
    rounds = 0
    while left := {shard: one for shard, one in mine.items() if shard not in found}:
        words, _, answer = told(left, theirs, left)
        assert 1 <= len(words) <= most
        assert len(answer.sets) <= len(left)
        found |= words
        rounds += 1
    assert found == theirs
    assert rounds <= 40


def test_an_answer_has_at_most_one_set_for_each_shard() -> None:
    for count in (1, 2):
        answer = Compared(b"r", [0], [Applied().to_bytes()] * count)
        if count == 1:
            assert words_of(answer, [0], {0: of_jobs(1)}, 0.0)
            continue
        with pytest.raises(MessageError, match="more sets than shards"):
            words_of(answer, [0], {0: of_jobs(1)}, 0.0)


def _reports(words: dict[int, Applied]) -> dict[int, PeerReport]:
    return {shard: PeerReport(ReplicaState.READY, one, 0.0) for shard, one in words.items()}


_SETS = st.dictionaries(
    st.sampled_from([bytes([part]) * 16 for part in (0, 1, 2, 255)] + [b"\1" * 15 + b"\2"]),
    st.sets(st.sampled_from([0, 1, 70_000]), min_size=1),
).map(lambda sets: Applied({job: BitMap(chunks) for job, chunks in sets.items()}))
_HELD = st.dictionaries(st.integers(0, 4), _SETS).map(lambda held: dict(sorted(held.items())))


@given(_HELD, _HELD)
def test_whatever_two_peers_hold_is_told_at_the_second_question(
    mine: dict[int, Applied], theirs: dict[int, Applied]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(set_comparison, "MANY_JOBS", 0)
        words, _, _ = told(mine, theirs)
        again, _, _ = told(mine, theirs, mine)
    expected = {shard: theirs.get(shard, Applied()) for shard in mine}
    assert again == expected
    assert {shard: expected[shard] for shard in words} == words
    for shard, chunks in again.items():
        assert chunks.digest == expected[shard].digest
        assert len(chunks) == len(expected[shard])


def test_only_one_jobs_chunks_are_told_to_who_wants_no_others() -> None:
    one = of_jobs(1000, (3, 7))
    held = about(JOBS[3], {0: one, 1: one, 2: of_jobs(2)})
    assert held == {0: Applied({JOBS[3]: BitMap([0, 7])}), 1: held[0], 2: Applied()}
    assert held[0] is held[1]


def test_an_answer_by_parts_that_is_none_is_refused() -> None:
    mine = {0: of_jobs(1000)}
    job = JOBS[0]
    right = Applied({job: BitMap([0, 1])}).to_bytes()
    assert words_of(Compared(b"r", [0], [right], [job[:1]]), [0], mine, 0.0)
    assert words_of(Compared(b"r", [-2], []), [0], mine, 0.0, []) == {}
    with pytest.raises(MessageError, match="reports on no shard"):
        words_of(Compared(b"r", [-2], []), [0], mine, 0.0, [mine[0].parts])
    for answer in (
        Compared(b"r", [-2], []),  # whole sets were wanted
        Compared(b"r", [-3], []),
        Compared(b"r", [0], [right], [b"", b""]),
        Compared(b"r", [0], [right], [bytes([job[0] ^ 1])]),  # a job of another part
    ):
        with pytest.raises(MessageError, match="comparison"):
            words_of(answer, [0], mine, 0.0)


def test_an_answer_with_sets_of_more_jobs_together_than_one_may_have_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(set_comparison, "MOST_JOBS", 3)
    mine = dict.fromkeys([1, 2, 3], of_jobs(1))
    sets = [
        applied(1).plus(OTHER_JOB, 1).to_bytes(),
        applied(2).to_bytes(),
        applied(3).to_bytes(),
    ]
    words = words_of(Compared(b"rr", [0, 1], sets[:2]), [1, 2], mine, 1.0)
    assert words[2].chunks == applied(2)
    with pytest.raises(MessageError, match="over 3 jobs in its sets"):
        words_of(Compared(b"rrr", [0, 1, 2], sets), [1, 2, 3], mine, 1.0)
