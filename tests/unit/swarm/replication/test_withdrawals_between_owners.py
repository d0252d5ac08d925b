"""What an owner takes from another that says something is withdrawn."""

import numpy as np

from giaann_p2p.store.applied import WITHDRAWN
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from giaann_p2p.swarm.replication.delta_checks import DeltaChecks
from giaann_p2p.swarm.wire.actions import Adopt
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.messages import Push, Pushed, Refusal
from giaann_p2p.swarm.wire.shardset import packed
from giaann_p2p.swarm.wire.voucher import Notary, sealing, vouched
from tests.helpers_swarm import (
    AUTHORS,
    JOB,
    LAYOUT,
    LESSONS,
    LIMITS,
    NOW,
    RULES,
    SHARDS,
    SPEC,
    SWARM_ID,
    A,
    Around,
    B,
    C,
    Listed,
    Side,
    talk,
)

ALL = np.arange(SHARDS, dtype=np.uint16)
HONEST, LIAR = AUTHORS[:2]
LATER = NOW + 30


def listed(*chunks: int) -> Listed:
    return Listed(LIAR.peer, roots={(JOB, n): LESSONS.tree(n).root for n in chunks})


def by(author: Identity, chunk: int, back: int = 0, delta: int | None = None) -> Update:
    lesson = chunk if delta is None else delta
    tree = LESSONS.tree(lesson)
    seal = sealing([vouched(author, SWARM_ID, JOB, chunk, tree.root)], tree)(ALL)
    return Update.received(JOB, chunk | back, ALL, LESSONS.parcel(lesson, ALL), LIMITS, seal)


def store(*updates: Update) -> Store:
    made = Store.in_memory(SPEC, LAYOUT, retain=True)
    made.hold(range(SHARDS))
    for one in updates:
        made.apply([one])
    return made


def met(members: Listed, mine: Store, theirs: Store) -> tuple[Side, Side]:
    """Let an owner with a founder's list come together with another one, that may lie."""
    around = Around(A, B, C)
    delta_checks = DeltaChecks(
        SPEC, lambda: RULES, Notary(SWARM_ID, lambda: RULES, 1, members).check, members
    )
    one, other = Side(A, around, mine, delta_checks=delta_checks), Side(B, around, theirs)
    around.ready_at = {shard: [B] for shard in range(SHARDS)}
    for side in (other, one):
        side.tick(NOW)
    talk(one, other, NOW)
    for step in range(6):
        one.tick(LATER + step)
        talk(one, other, LATER + step)
    return one, other


def digests(found: Store) -> list[tuple[int, int]]:
    return list(found.digests())


def test_what_is_listed_is_taken_from_whoever_has_it() -> None:
    mine, theirs = store(by(HONEST, 1), by(LIAR, 2)), store(by(HONEST, 1), by(LIAR, 2))
    mine.release(JOB, [1, 2])
    theirs.apply([by(LIAR, 2, WITHDRAWN)])
    one, _ = met(listed(2), mine, theirs)
    assert digests(mine) == digests(store(by(HONEST, 1)))
    assert one.around.suspected == []


def test_what_is_not_listed_is_not_and_what_comes_with_it_is() -> None:
    """Which of the two has the older list, nobody can tell: it is no reason to suspect."""
    for members in (listed(), listed(2)):
        mine, theirs = store(by(HONEST, 1)), store(by(HONEST, 1), by(HONEST, 3))
        mine.release(JOB, [1])
        theirs.release(JOB, [1])
        theirs.apply([by(LIAR, 1, WITHDRAWN)])
        one, _ = met(members, mine, theirs)
        assert digests(mine) == digests(store(by(HONEST, 1), by(HONEST, 3)))
        assert one.around.suspected == []


def test_what_a_withdrawn_chunk_never_came_to_is_not_taken_back() -> None:
    mine, theirs = store(by(HONEST, 1), by(LIAR, 2)), store(by(HONEST, 1), by(LIAR, 2))
    mine.release(JOB, [1, 2])
    theirs.release(JOB, [2])
    theirs.apply([by(LIAR, 2, WITHDRAWN, delta=1)])
    before = digests(mine)
    one, _ = met(listed(2), mine, theirs)
    assert digests(mine) == before
    assert B in one.around.suspected


def whole(members: Listed) -> tuple[Side, Store]:
    """Let an owner be offered a shard in which a chunk that it has is withdrawn, and no delta."""
    mine = store(by(HONEST, 1), by(LIAR, 2))
    mine.release(JOB, [1, 2])
    theirs = store(by(HONEST, 1), by(LIAR, 2), by(LIAR, 2, WITHDRAWN), by(HONEST, 3))
    theirs.release(JOB, [1, 2, 3, 2 | WITHDRAWN])
    one, _ = met(members, mine, theirs)
    return one, mine


def test_a_whole_shard_comes_without_what_is_listed_and_with_all_else() -> None:
    one, mine = whole(listed(2))
    assert digests(mine) == digests(store(by(HONEST, 1), by(HONEST, 3)))
    assert one.around.suspected == []


def test_a_whole_shard_without_what_is_not_listed_is_turned_down() -> None:
    """Else anybody could have all forgotten; but the sender's list may be newer: no suspicion."""
    one, mine = whole(listed())
    assert digests(mine) == digests(store(by(HONEST, 1), by(LIAR, 2)))
    assert one.told(Adopt) == []
    assert one.around.suspected == []


def test_what_an_owner_has_of_the_disowned_is_taken_so_that_all_have_the_same() -> None:
    mine, theirs = store(by(HONEST, 1)), store(by(HONEST, 1), by(LIAR, 2))
    met(listed(), mine, theirs)
    assert digests(mine) == digests(theirs)
    assert mine.retained_for(0) == theirs.retained_for(0)  # with its author's name


def test_what_they_bring_themselves_is_not() -> None:
    around, members, replies = Around(A, B, C), listed(), []
    check = Notary(SWARM_ID, lambda: RULES, 1, members).check
    one = Side(A, around, store(), delta_checks=DeltaChecks(SPEC, lambda: RULES, check, members))
    one.tick(NOW)
    for chunk, author in ((1, HONEST), (2, LIAR)):
        came = by(author, chunk)
        push = Push(JOB, chunk, packed(ALL, SHARDS), bytes(came.parcel), came.seal)
        one.do(one.core.asked(len(replies), author.peer, push, NOW), NOW)
        replies.append(one.done[-1].message)
    assert isinstance(replies[0], Pushed)
    assert isinstance(replies[1], Refusal)
    assert "are disowned" in replies[1].reason
