"""What peers said, and for how long it counts."""

from giaann_p2p.swarm.evidence import Evidence, Word
from giaann_p2p.swarm.replica import State
from tests.helpers_swarm import A, B, C, applied


def word(asked: float) -> Word:
    return Word(State.READY, applied(int(asked)), asked)


def test_the_later_question_counts() -> None:
    evidence = Evidence()
    assert evidence.of(A, 3) is None
    evidence.heard(A, 3, word(5))
    evidence.heard(A, 3, word(4))  # its answer was on its way for longer
    assert evidence.of(A, 3) == word(5)
    same_time = Word(State.DRAINING, applied(), 5)
    evidence.heard(A, 3, same_time)
    assert evidence.of(A, 3) is same_time
    evidence.heard(A, 3, word(6))
    assert evidence.of(A, 3) == word(6)
    assert evidence.of(A, 2) is None
    assert evidence.of(B, 3) is None


def test_what_was_said_lately() -> None:
    evidence = Evidence()
    for peer, asked in ((A, 3.0), (B, 5.0), (C, 7.0)):
        evidence.heard(peer, 1, word(asked))
    assert dict(evidence.on(1, 5.0)) == {B: word(5), C: word(7)}
    assert dict(evidence.on(0, 5.0)) == {}


def test_forgetting() -> None:
    evidence = Evidence()
    for peer in (A, B, C):
        for shard in (0, 1):
            evidence.heard(peer, shard, word(1))
    evidence.keep(0, {C, A})
    assert [set(dict(evidence.on(shard, 0))) for shard in (0, 1)] == [{A, C}, {A, B, C}]
    evidence.forget_shard(1)
    evidence.forget_shard(2)
    evidence.keep(2, set())
    assert [set(dict(evidence.on(shard, 0))) for shard in (0, 1)] == [{A, C}, set()]
    evidence.heard(B, 0, word(0))  # an old word is better than none
    assert evidence.of(B, 0) == word(0)


def test_who_began_anew_said_nothing_lately_and_is_known_to_have_had_something() -> None:
    evidence = Evidence()
    evidence.heard(A, 0, word(5))
    evidence.heard(B, 0, word(5))
    evidence.restarted(A)
    evidence.restarted(C)
    assert dict(evidence.on(0, -1e9)) == {B: word(5)}
    assert evidence.of(A, 0) == Word(State.READY, applied(5), float("-inf"))
    assert evidence.of(C, 0) is None
    evidence.heard(A, 0, word(4))  # asked since
    assert evidence.of(A, 0) == word(4)
