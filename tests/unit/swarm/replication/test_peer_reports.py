"""What peers said, and for how long it counts."""

from giaann_p2p.swarm.replication.peer_reports import PeerReport, PeerReports
from giaann_p2p.swarm.wire.replica import ReplicaState
from tests.helpers_swarm import A, B, C, applied


def word(asked: float) -> PeerReport:
    return PeerReport(ReplicaState.READY, applied(int(asked)), asked)


def test_the_later_question_counts() -> None:
    reports = PeerReports()
    assert reports.of(A, 3) is None
    reports.heard(A, 3, word(5))
    reports.heard(A, 3, word(4))  # its answer was on its way for longer
    assert reports.of(A, 3) == word(5)
    same_time = PeerReport(ReplicaState.DRAINING, applied(), 5)
    reports.heard(A, 3, same_time)
    assert reports.of(A, 3) is same_time
    reports.heard(A, 3, word(6))
    assert reports.of(A, 3) == word(6)
    assert reports.of(A, 2) is None
    assert reports.of(B, 3) is None


def test_what_was_said_lately() -> None:
    reports = PeerReports()
    for peer, asked in ((A, 3.0), (B, 5.0), (C, 7.0)):
        reports.heard(peer, 1, word(asked))
    assert dict(reports.on(1, 5.0)) == {B: word(5), C: word(7)}
    assert dict(reports.on(0, 5.0)) == {}


def test_forgetting() -> None:
    reports = PeerReports()
    for peer in (A, B, C):
        for shard in (0, 1):
            reports.heard(peer, shard, word(1))
    reports.keep(0, {C, A})
    assert [set(dict(reports.on(shard, 0))) for shard in (0, 1)] == [{A, C}, {A, B, C}]
    reports.forget_shard(1)
    reports.forget_shard(2)
    reports.keep(2, set())
    assert [set(dict(reports.on(shard, 0))) for shard in (0, 1)] == [{A, C}, set()]
    reports.heard(B, 0, word(0))  # an old word is better than none
    assert reports.of(B, 0) == word(0)


def test_who_began_anew_said_nothing_lately_and_is_known_to_have_had_something() -> None:
    reports = PeerReports()
    reports.heard(A, 0, word(5))
    reports.heard(B, 0, word(5))
    reports.restarted(A)
    reports.restarted(C)
    assert dict(reports.on(0, -1e9)) == {B: word(5)}
    assert reports.of(A, 0) == PeerReport(ReplicaState.READY, applied(5), float("-inf"))
    assert reports.of(C, 0) is None
    reports.heard(A, 0, word(4))  # asked since
    assert reports.of(A, 0) == word(4)
