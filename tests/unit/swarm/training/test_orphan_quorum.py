"""What a founder withdraws by what owners tell: a majority's word, whatever a lone liar says."""

from collections.abc import Mapping

from giaann_p2p.swarm.training.orphan_quorum import Agreed, agreed
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.withdrawn import Chunk
from tests.helpers_swarm import JOB, OTHER_JOB

TRUE, FALSE = b"t" * 16, b"f" * 16
OLD, LIE = 1, 2
"""A chunk that somebody honest taught, which all have forgotten since; and a liar's."""


def said(*orphans: int, root: bytes = TRUE) -> dict[Chunk, bytes]:
    return {(JOB, chunk): root for chunk in orphans}


def asked(*told: Mapping[Chunk, bytes] | None) -> Agreed:
    return agreed({Peer(bytes([at]) * 32): one for at, one in enumerate(told)})


def withdrawn(*told: Mapping[Chunk, bytes] | None) -> set[int]:
    return {chunk for _, chunk in asked(*told).roots}


def test_what_most_tell_is_withdrawn() -> None:
    assert asked(said(LIE), said(LIE), said(LIE)) == Agreed({(JOB, LIE): TRUE}, set(), 0, 3)
    assert asked() == Agreed({}, set(), 0, 0)
    assert withdrawn(said(LIE)) == {LIE}  # there is but one owner


def test_a_lone_liar_has_nothing_withdrawn_that_others_taught_and_forgot() -> None:
    found = asked(said(LIE), said(LIE), said(OLD))
    assert found.roots.keys() == {(JOB, LIE)}
    assert found.left == {(JOB, OLD)}
    assert withdrawn(said(OLD), said()) == set()
    assert withdrawn(said(OLD), None, None) == set()  # and cuts the others off


def test_a_lone_liar_keeps_no_lie() -> None:
    for lie in (said(), None, said(LIE, root=FALSE), said(OLD)):
        assert asked(said(LIE), said(LIE), lie).roots == {(JOB, LIE): TRUE}


def test_what_too_few_remember_stays() -> None:
    assert withdrawn(said(LIE), said()) == set()
    assert withdrawn(said(LIE), said(LIE), said(), said()) == set()
    assert withdrawn(said(LIE), said(LIE), said(LIE), said(), said()) == {LIE}


def test_who_is_silent_is_counted() -> None:
    assert asked(said(LIE), said(LIE), None, None, None) == Agreed({}, {(JOB, LIE)}, 3, 5)
    assert asked(said(LIE), said(LIE), said(LIE), None, None).silent == 2


def test_where_most_tell_and_nobody_the_same_all_have_to_remember() -> None:
    different = [said(LIE, root=bytes([at]) * 16) for at in range(3)]
    assert withdrawn(*different) == {LIE}  # each by its own delta: nobody needs another's
    assert withdrawn(*different, said()) == set()


def test_jobs_are_counted_one_by_one() -> None:
    chunks: dict[Chunk, bytes] = {(JOB, 1): TRUE, (JOB, 2): TRUE, (OTHER_JOB, 1): TRUE}
    assert asked(chunks).by_job() == {JOB: 2, OTHER_JOB: 1}
