"""Which rows are compared, and which a majority stands behind."""

import random
from collections import Counter

import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.model.rows import Answer, Neuron
from giaann_p2p.swarm.members.majority import majority
from giaann_p2p.swarm.reading.row_match import same
from giaann_p2p.swarm.reading.row_vote import Ballot, Verify, checked, partner, sample
from giaann_p2p.swarm.wire.identity import Peer
from tests.helpers_swarm import A, B, C, D
from tests.unit.swarm.helpers_rows import row

E, F, G = (Peer(letter * 32) for letter in (b"E", b"F", b"G"))
SALT = b"nobody knows it."
NEURONS = [Neuron(concept, feature) for concept in range(1, 101) for feature in range(20)]


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.9])
def test_a_sample_is_about_as_large_as_it_is_to_be(share: float) -> None:
    found = sample(Verify(share, SALT), 1, NEURONS)
    assert share * 0.6 < len(found) / len(NEURONS) < share * 1.4
    assert found == sample(Verify(share, SALT), 1, NEURONS)
    assert set(found) <= set(sample(Verify(min(1.0, share + 0.05), SALT), 1, NEURONS))


def test_nobody_foresees_a_sample() -> None:
    drawn = [
        sample(Verify(0.5, salt), number, NEURONS)
        for salt, number in ((SALT, 1), (SALT, 2), (SALT[::-1], 1))
    ]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        both = set(drawn[one]) & set(drawn[other])
        assert 0.4 < len(both) / len(drawn[one]) < 0.6


def test_nothing_and_everything_are_samples() -> None:
    assert sample(Verify(0.0), 1, NEURONS) == []
    assert sample(Verify(1.0), 1, NEURONS) == NEURONS


def test_any_of_the_others_may_be_the_second() -> None:
    verify = Verify(0.5, SALT)
    found = Counter(partner(verify, number, 3, [C, A, B]) for number in range(300))
    assert set(found) == {A, B, C}
    assert min(found.values()) > 60
    assert partner(verify, 1, 3, [A, B, C]) == partner(verify, 1, 3, [C, B, A])
    assert partner(verify, 1, 3, []) is None
    seconds = {partner(verify, 1, shard, [A, B, C]) for shard in range(30)}
    assert seconds == {A, B, C}


@pytest.mark.parametrize(
    ("verify", "complaint"),
    [
        (Verify(-0.1, SALT), "from 0 to 1; it is -0.1"),
        (Verify(1.1, SALT), "from 0 to 1; it is 1.1"),
        (Verify(float("nan"), SALT), "from 0 to 1; it is nan"),
        (Verify(0.5), "16 random bytes or more, .* it has 0"),
    ],
)
def test_what_cannot_be_is_told(verify: Verify, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        checked(verify)


@pytest.mark.parametrize(
    ("verify", "every", "some"),
    [(Verify(), False, False), (Verify(1.0), True, False), (Verify(0.1, SALT), False, True)],
)
def test_what_can_be_is_taken(verify: Verify, every: bool, some: bool) -> None:
    assert checked(verify) == verify
    assert (verify.all, verify.sampled) == (every, some)


@pytest.mark.parametrize(("count", "most"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_more_than_half_are_a_majority(count: int, most: int) -> None:
    assert majority(count) == most


# A row of one neuron: TRUE has grown out of OLD and into NEW; FALSE is none of them.
OLD, TRUE, NEW = (row(count, {(1, 0, 0, 0): count}) for count in (1, 2, 3))
FALSE, OTHER = row(2, {(9, 0, 0, 0): 1}), row(2, {(8, 0, 0, 0): 1})
STRONGER = row(2, {(1, 0, 0, 0): 9})
MOVING = [row(n, {(1, 0, 0, 0): s}) for n, s in ((1, 1), (1, 2), (1, 3), (2, 3), (3, 3))]
"""The same, of which somebody says another row each time."""


def voted(*answers: Answer, voters: int = 3) -> Ballot:
    ballot = Ballot([A, B, C, D][:voters], [])
    for peer, rows in zip((A, B, C, D), answers, strict=False):
        for one in rows:
            ballot.heard(peer, [one])
    return ballot


@pytest.mark.parametrize(
    ("answers", "elected"),
    [
        ([[TRUE]], "open"),
        ([[TRUE], [TRUE]], TRUE),
        ([[None], [None]], None),
        ([[TRUE], [FALSE]], "open"),
        ([[FALSE], [TRUE]], "open"),
        ([[None], [TRUE]], "open"),
        ([[TRUE], [None]], "open"),
        ([[TRUE], [STRONGER]], "open"),
        ([[FALSE], [TRUE], [TRUE]], TRUE),
        ([[None], [TRUE], [TRUE]], TRUE),
        ([[TRUE], [TRUE], [FALSE]], TRUE),
        ([[FALSE], [OTHER], [TRUE]], "open"),
        ([[FALSE], [FALSE], [TRUE]], FALSE),  # two liars of three: nobody can tell
        ([[OLD, NEW], [TRUE]], "open"),  # it may have been true in between, or never
        ([[OLD, NEW, NEW, NEW], [TRUE]], "open"),
        ([[OLD, *8 * [NEW]], [TRUE]], "open"),  # who was behind may have missed it, or it never was
        ([[*MOVING[:-1], NEW], [TRUE]], TRUE),  # it changes all the time
        ([[TRUE], [*MOVING[:-1], NEW]], TRUE),
        ([MOVING, [FALSE]], "open"),
        ([[OLD, NEW, NEW, OLD, OLD], [TRUE]], "open"),
        ([[OLD, NEW], [NEW]], NEW),
        ([[OLD, NEW], [OLD]], OLD),
        ([[OLD, TRUE], [TRUE, NEW]], TRUE),
        ([[OLD, TRUE], [FALSE]], "open"),
        ([[NEW, OLD], [TRUE]], "open"),  # what has shrunk
        ([[OLD, TRUE], [None], [FALSE]], "open"),
    ],
)
def test_what_a_majority_stands_behind_is_elected(answers: list[Answer], elected: object) -> None:
    found = voted(*answers).result()
    if elected == "open":
        assert found is None
    else:
        assert found is not None
        assert same(found[0], elected)  # type: ignore[arg-type]


def test_one_row_that_nobody_agrees_on_holds_up_all() -> None:
    ballot = Ballot([A, B, C], [])
    ballot.heard(A, [TRUE, TRUE])
    ballot.heard(B, [TRUE, FALSE])
    assert ballot.result() is None
    assert ballot.disputed() == [1]
    ballot.heard(C, [TRUE, TRUE])
    assert ballot.result() == [TRUE, TRUE]
    assert ballot.disputed() == [1]


def test_of_four_three_must_agree_and_of_two_both() -> None:
    assert voted([TRUE], [TRUE], voters=4).result() is None
    assert voted([TRUE], [TRUE], [TRUE], voters=4).result() == [TRUE]
    assert voted([TRUE], voters=2).result() is None
    assert voted([TRUE], [TRUE], voters=2).result() == [TRUE]
    assert voted([TRUE], voters=1).result() == [TRUE]


def test_who_is_asked_twice_in_vain_has_no_vote_and_lends_it_to_nobody() -> None:
    ballot = voted([TRUE])
    for peer, electorate, need in ((B, 3, 2), (C, 3, 2), (B, 2, 2), (C, 1, 2)):
        assert ballot.result() is None
        ballot.silent(peer)
        assert (len(ballot.electorate), ballot.need) == (electorate, need)
    assert ballot.result() is None  # a liar whom alone a reader reaches would be believed
    ballot.heard(C, [TRUE])
    assert ballot.result() == [TRUE]


def test_who_has_it_not_or_was_in_doubt_before_loses_its_vote_at_once() -> None:
    ballot = Ballot([A, B, C], [B])
    ballot.heard(A, [TRUE])
    ballot.silent(B)
    assert ballot.electorate == {A, C}
    ballot.moved(C)
    assert ballot.electorate == {A}
    ballot.moved(B)
    assert (ballot.need, ballot.result()) == (2, None)  # a liar would be believed alone


def test_while_most_owners_fetch_a_shard_the_one_left_is_not_believed_alone() -> None:
    ballot = Ballot([A, B, C], [], 3, serving=[A, D, E])
    ballot.heard(A, [FALSE])
    ballot.moved(B)
    assert (ballot.need, ballot.electorate) == (2, {A, C})
    ballot.moved(C)
    assert (ballot.need, ballot.electorate) == (2, {A, D, E})
    ballot.heard(D, [TRUE])
    assert ballot.result() is None
    ballot.heard(E, [TRUE])
    assert ballot.result() == [TRUE]


def test_the_more_vote_in_place_of_owners_the_more_must_agree() -> None:
    ballot = Ballot([A, B, C], [], 3, serving=[A, D, E, F, G])
    for peer in (B, C):
        ballot.moved(peer)
    for peer in (A, D):
        ballot.heard(peer, [FALSE])
    for peer in (E, F):
        ballot.heard(peer, [TRUE])
    assert (ballot.need, ballot.result()) == (3, None)
    ballot.heard(G, [TRUE])
    assert ballot.result() == [TRUE]


def test_who_has_said_something_keeps_its_vote() -> None:
    ballot = voted([TRUE], [FALSE])
    for peer in (A, B, B, B, C):
        ballot.silent(peer)
    ballot.silent(A)
    assert ballot.electorate == {A, B, C}
    assert ballot.result() is None


def test_strangers_have_no_vote_unless_nobody_else_is_left() -> None:
    ballot = Ballot([A, B], [])
    ballot.heard(A, [TRUE])
    ballot.heard(C, [TRUE])
    assert ballot.result() is None
    assert ballot.disputed() == []
    alone = Ballot([A], [])
    alone.heard(D, [FALSE])
    assert alone.result() is None
    alone.moved(A)
    assert alone.result() == [FALSE]
    assert alone.disputed() == []
    assert Ballot([], []).need == 1


def test_those_that_should_be_there_and_are_not_known_vote_for_nothing() -> None:
    ballot = Ballot([A], [], 7)
    ballot.heard(A, [FALSE])
    assert (ballot.need, ballot.result()) == (4, None)
    few = Ballot([A, B], [], 3)
    few.moved(A)
    few.heard(B, [FALSE])
    assert (few.need, few.result()) == (2, None)
    few.heard(A, [FALSE])  # it does have it by now
    assert (few.need, few.result()) == (2, [FALSE])


@pytest.mark.parametrize("seed", range(200))
def test_a_row_between_two_true_ones_that_never_was_is_not_elected_soon(seed: int) -> None:
    """A liar of three says what an honest peer seems to have had between two times."""
    rng = random.Random(seed)
    history = [row(1 + time, {(1, 0, 0, 0): 1 + time}) for time in range(5)]
    between = [row(1 + time, {(1, 0, 0, 0): 2 + time}) for time in range(4)]
    peers = rng.sample([A, B, C], 3)
    ballot, had = Ballot(peers, []), dict.fromkeys(peers[1:], 0)
    for peer in rng.sample(4 * peers, 12):
        if peer == peers[0]:
            ballot.heard(peer, [rng.choice(between)])
        else:
            had[peer] = rng.randrange(had[peer], len(history))
            ballot.heard(peer, [history[had[peer]]])
        found = ballot.result()
        assert found is None or any(same(found[0], one) for one in history)


def test_a_row_that_never_was_is_not_elected_by_who_has_caught_up_while_the_third_is_away() -> None:
    """However often it is asked: its row has changed once, and is no other one since."""
    old, new = (row(1 + time, {(1, 0, 0, 0): 1 + time}) for time in range(2))
    between = row(1, {(1, 0, 0, 0): 2})
    ballot = Ballot([A, B, C], [])
    for time in range(20):
        ballot.heard(A, [new if time else old])
        ballot.heard(B, [between])
        ballot.silent(C)
        assert ballot.result() is None
    ballot.heard(C, [new])
    assert same((ballot.result() or [None])[0], new)


@pytest.mark.parametrize("seed", range(200))
def test_a_wrong_row_is_never_elected_while_a_majority_is_honest(seed: int) -> None:
    """Honest peers say something that is true between two times; liars say anything."""
    rng = random.Random(seed)
    peers = [A, B, C, D][: rng.randrange(2, 5)]
    liars = set(peers[: (len(peers) - 1) // 2])
    history = [row(1 + time, {(1, 0, 0, 0): 1 + time}) for time in range(6)]
    ballot, had = Ballot(peers, []), dict.fromkeys(peers, 0)
    for _ in range(12):
        peer = rng.choice(peers)
        if peer in liars:
            ballot.heard(peer, [rng.choice([None, FALSE, STRONGER, *history])])
        else:
            had[peer] = rng.randrange(had[peer], len(history))
            ballot.heard(peer, [history[had[peer]]])
        found = ballot.result()
        if found is not None:
            earliest = min(
                said.first[0].count  # type: ignore[union-attr]
                for one, said in ballot.said.items()
                if one not in liars
            )
            assert any(same(found[0], one) for one in history[earliest - 1 :])
