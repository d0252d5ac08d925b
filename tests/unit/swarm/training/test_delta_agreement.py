"""What a chunk comes to, as peers of every temper have it."""

import random

import pytest

from giaann_p2p.errors import MessageError
from giaann_p2p.store.seal import DIGEST
from giaann_p2p.swarm.training.delta_agreement import DeltaAgreement, Verdict
from giaann_p2p.swarm.training.trust import Trust
from giaann_p2p.swarm.wire.identity import Identity, Peer
from giaann_p2p.swarm.wire.training_messages import Result
from giaann_p2p.swarm.wire.voucher import vouched
from tests.helpers_swarm import AUTHORS, JOB, OTHER_JOB, SWARM_ID

TRUE, FALSE, OTHER = (bytes([number]) * DIGEST for number in range(3))
P = [author.peer for author in AUTHORS]


def came(author: Identity, root: bytes = TRUE, chunk: int = 0) -> Result:
    return Result(chunk, root, vouched(author, SWARM_ID, JOB, chunk, root))


class Court:
    """A jury, and what it says of each word."""

    def __init__(self, redundancy: int = 1, share: float = 0.0, seed: bytes = b"") -> None:
        self.trust = Trust(seed)
        self.agreement = DeltaAgreement(SWARM_ID, JOB, redundancy, share, self.trust)

    def says(
        self, number: int, root: bytes = TRUE, chunk: int = 0, is_last: bool = False
    ) -> Verdict | None:
        author = AUTHORS[number]
        self.agreement.hear(author.peer, came(author, root, chunk))
        return self.agreement.verdict(author.peer, chunk, is_last)


def found(*right: int, root: bytes = TRUE, liars: tuple[int, ...] = ()) -> Verdict:
    vouchers = [came(AUTHORS[number], root).voucher for number in right]
    return Verdict(vouchers, [P[number] for number in liars])


def test_one_will_do_where_one_is_asked_for() -> None:
    assert Court().says(0) == found(0)


def test_as_many_as_are_asked_for_have_to_come_to_the_same() -> None:
    court = Court(3)
    assert court.says(0) is None
    assert court.says(1) is None
    assert court.says(0) is None  # its word counts once
    assert court.says(2) == found(2, 0, 1)


def test_nobody_is_waived_where_more_are_asked_for() -> None:
    assert Court(2).says(0, is_last=True) is None


def test_who_is_checked_waits_for_another() -> None:
    court = Court(share=1.0)
    assert court.says(0) is None
    assert court.says(1) == found(1)
    assert court.agreement.checks == 0
    court.agreement.close(0)
    assert court.agreement.checks == 1


def test_a_check_is_waived_if_there_is_nobody_to_do_it() -> None:
    assert Court(share=1.0).says(0, is_last=True) == found(0)


def test_two_opinions_wait_for_a_third_whoever_is_there() -> None:
    court = Court(share=1.0)
    assert court.says(0, FALSE) is None
    assert court.says(1, is_last=True) is None
    assert court.agreement.is_disputed(0)
    assert court.says(2) == found(2, liars=(0,))
    assert court.trust.liars == {P[0]: 1}
    assert not court.agreement.is_disputed(0)


def test_the_first_may_be_the_one_that_is_right() -> None:
    court = Court(2)
    court.says(0)
    court.says(1, FALSE)
    assert court.says(2) == found(2, 0, liars=(1,))


def test_one_against_one_and_another_settles_nothing() -> None:
    court = Court(2)
    assert [court.says(0, FALSE), court.says(1, OTHER), court.says(2)] == [None, None, None]
    assert court.says(3, is_last=True) is None  # two against two
    assert court.trust.liars == {}


def test_who_says_otherwise_later_has_the_later_word() -> None:
    court = Court(2)
    court.says(0, FALSE)
    court.says(0)
    assert court.says(1) == found(1, 0)


def test_a_liars_words_on_other_chunks_count_for_nothing() -> None:
    court = Court(2)
    court.says(0, FALSE, chunk=7)
    court.says(0, FALSE)
    court.says(1)
    court.says(2)
    assert P[0] in court.trust.liars
    assert court.says(3, FALSE, chunk=7) is None


def test_the_same_word_again_has_the_same_answer() -> None:
    court = Court()
    assert court.says(0) == court.says(0) == found(0)
    court = Court(share=1.0)
    court.says(0)
    assert court.says(1) == court.says(1) == found(1)


def test_who_was_right_is_known_when_the_chunk_is_done() -> None:
    court = Court(share=1.0)
    court.says(0)
    court.says(1)
    assert repr(court.trust) == "<Trust: 0 peers were right, 0 lied>"
    court.agreement.close(0)
    court.agreement.close(0)
    assert repr(court.trust) == "<Trust: 2 peers were right, 0 lied>"
    assert repr(court.agreement) == "<DeltaAgreement: votes on 0 chunks>"


def test_of_two_who_differ_neither_was_right_though_one_of_them_has_brought_it() -> None:
    court = Court()
    for number in (0, 1):
        court.trust.was_right(P[number])
    assert court.says(0) == found(0)
    assert court.says(1, FALSE) is None  # it was late, and so it had the chunk, too
    court.agreement.close(0)
    assert repr(court.trust) == "<Trust: 0 peers were right, 0 lied>"


@pytest.mark.parametrize(
    "said",
    [
        came(AUTHORS[1]),
        Result(1, TRUE, came(AUTHORS[0]).voucher),
        Result(0, FALSE, came(AUTHORS[0]).voucher),
        Result(0, TRUE, vouched(AUTHORS[0], SWARM_ID, OTHER_JOB, 0, TRUE)),
        Result(0, TRUE, vouched(AUTHORS[0], bytes(32), JOB, 0, TRUE)),
    ],
)
def test_a_word_has_to_be_its_senders_own(said: Result) -> None:
    court = Court()
    with pytest.raises(MessageError, match="not signed by the peer that reports it"):
        court.agreement.hear(P[0], said)


def drawn(trust: Trust, peer: Peer, share: float = 0.02, chunks: int = 2000) -> float:
    return sum(trust.draws(peer, JOB, chunk, share) for chunk in range(chunks)) / chunks


def test_newcomers_are_checked_and_who_was_right_is_less_and_less_but_never_never() -> None:
    trust = Trust(b"seed")
    assert drawn(trust, P[0]) == 1.0
    shares = []
    for _ in range(20):
        trust.was_right(P[0])
        shares.append(drawn(trust, P[0]))
    assert shares[0] == pytest.approx(1 / 4, abs=0.05)
    assert shares[1] == pytest.approx(1 / 9, abs=0.04)
    assert shares[-1] == pytest.approx(0.02, abs=0.01)
    assert shares[-1] == shares[-2]
    assert drawn(trust, P[1]) == 1.0


def test_nobody_is_checked_if_nobody_wants_it() -> None:
    assert drawn(Trust(b"seed"), P[0], 0.0) == 0.0


def test_which_chunks_are_checked_only_the_seed_tells() -> None:
    one, same, other = Trust(b"a"), Trust(b"a"), Trust(b"b")
    for trust in (one, same, other):
        trust.was_right(P[0])
    told = [
        [trust.draws(P[0], JOB, chunk, 0.5) for chunk in range(200)] for trust in (one, same, other)
    ]
    assert told[0] == told[1] != told[2]


@pytest.mark.parametrize("seed", range(20))
def test_a_false_delta_never_counts_while_those_who_are_right_are_more(seed: int) -> None:
    """Of each chunk's peers one at most lies, or each liar says something else."""
    rng = random.Random(seed)
    court = Court(2)
    for chunk in range(50):
        liar = rng.randrange(4)
        for number in rng.sample(range(4), 4):
            root = rng.choice((FALSE, OTHER)) if number == liar else TRUE
            verdict = court.says(number, root, chunk)
            if verdict is not None:
                assert root == TRUE
                break
        else:
            pytest.fail("three who are right settle it")
        court.agreement.close(chunk)
