"""What is withdrawn by the founder's list, and nothing else; and what owners find for it."""

from collections.abc import Iterable, Mapping

import numpy as np
import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.store.applied import WITHDRAWN, Applied
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.layout import Shards
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from giaann_p2p.swarm.replication.retract import Withdraw
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.orphans import Orphans
from giaann_p2p.swarm.wire.voucher import sealing, vouched
from giaann_p2p.swarm.wire.withdrawal_filter import Search, WithdrawalFilter
from giaann_p2p.swarm.wire.withdrawn import roots_in
from tests.helpers_swarm import (
    AUTHORS,
    JOB,
    LAYOUT,
    LESSONS,
    LIMITS,
    SHARDS,
    SPEC,
    SWARM_ID,
    Listed,
)

ALL = np.arange(SHARDS, dtype=np.uint16)
HONEST, LIAR, OTHER_LIAR = AUTHORS[:3]


def listed(*chunks: int, roots: Mapping[int, bytes] | None = None) -> Listed:
    """Return a founder's word that disowns the liars, and withdraws some chunks."""
    found = {(JOB, chunk): LESSONS.tree(chunk).root for chunk in chunks}
    found |= {(JOB, chunk): root for chunk, root in (roots or {}).items()}
    return Listed(LIAR.peer, OTHER_LIAR.peer, roots=found)


def by(*authors: Identity, chunk: int, delta: int | None = None, shards: Shards = ALL) -> Update:
    """Return a chunk, or what another comes to under its name."""
    lesson = chunk if delta is None else delta
    tree = LESSONS.tree(lesson)
    said = [vouched(author, SWARM_ID, JOB, chunk, tree.root) for author in authors]
    parcel, seal = LESSONS.parcel(lesson, shards), sealing(said, tree)(shards)
    return Update.received(JOB, chunk, shards, parcel, LIMITS, seal)


def store(*updates: Update, on: FakeDisk | None = None) -> Store:
    made = Store.open(on, SPEC, LAYOUT, retain=True, spare=1 << 20) if on else in_memory()
    made.hold(range(SHARDS))
    made.apply(updates)
    return made


def in_memory() -> Store:
    return Store.in_memory(SPEC, LAYOUT, retain=True)


def done(
    found: Store, members: Listed, number: int = 1, search: Search | None = None
) -> tuple[list[int], set[int]]:
    """Withdraw; return which chunks were, and which are told as orphans."""
    orphans = Orphans()
    deed = Withdraw(members, number, orphans, search or Search())
    gone = list[int]()
    while not deed.over:
        updates = deed.next(found)
        found.apply(updates)
        deed.done(found)
        gone += [one.chunk - WITHDRAWN for one in updates]
    told = roots_in(orphans.page(number, 0).found)
    assert all(root == LESSONS.tree(chunk).root for (_, chunk), root in told.items())
    return gone, {chunk for _, chunk in told}


def comes_to(chunks: Iterable[int]) -> list[tuple[int, int]]:
    return list(store(*[by(HONEST, chunk=chunk) for chunk in chunks]).digests())


def test_what_is_listed_is_withdrawn_and_what_else_liars_alone_stand_for_is_told() -> None:
    found = store(
        by(HONEST, chunk=0),
        by(LIAR, chunk=1),
        by(LIAR, HONEST, chunk=2),
        by(LIAR, OTHER_LIAR, chunk=3),
    )
    assert done(found, listed()) == ([], {1, 3})
    assert list(found.digests()) == comes_to([0, 1, 2, 3])
    assert done(found, listed(1)) == ([1], {3})
    assert done(found, listed(1, 3)) == ([3], set())
    assert done(found, listed(1, 3)) == ([], set())
    assert list(found.digests()) == comes_to([0, 2])


def test_what_the_founder_lists_goes_whoever_taught_it_here() -> None:
    """Most owners told so; this one got the same chunk from somebody else."""
    found = store(by(HONEST, chunk=0), by(HONEST, chunk=1))
    assert done(found, listed(1)) == ([1], set())
    assert list(found.digests()) == comes_to([0])


def test_a_chunk_that_somebody_honest_taught_some_of_the_shards_is_not_told() -> None:
    found = store(by(LIAR, chunk=1, shards=ALL[:2]), by(HONEST, chunk=1, shards=ALL[2:]))
    assert done(found, listed()) == ([], set())


def test_it_is_done_little_by_little() -> None:
    found = store(*[by(LIAR, chunk=chunk) for chunk in range(20)])
    orphans = Orphans()
    deed = Withdraw(listed(*range(20)), 1, orphans)
    assert repr(deed) == "<Withdraw: under way>"
    sizes = []
    while not deed.over:
        with pytest.raises(UsageError, match=r"busy: .* not finished its search by list 1"):
            orphans.page(1, 0)
        sizes.append(len(told := deed.next(found)))
        found.apply(told)
        deed.done(found)
    assert sizes == [16, 4]
    assert found.digest() == 0
    assert orphans.page(1, 0).found == orphans.page(0, 0).found == ()


def test_so_many_records_are_looked_at_whether_liars_stand_for_them_or_not() -> None:
    taught = [by(HONEST if chunk < 18 else LIAR, chunk=chunk) for chunk in range(20)]
    found, deed = store(*taught), Withdraw(listed(18, 19), 1, Orphans())
    assert [len(deed.next(found)), deed.over] == [0, False]
    assert [len(deed.next(found)), deed.over] == [2, True]


def test_who_was_told_something_else_withdraws_that_and_offers_it_to_nobody() -> None:
    found = store(by(LIAR, chunk=1, delta=5), by(LIAR, chunk=2))
    assert done(found, listed(1, 2))[0] == [1, 2]
    assert found.digest() == 0
    assert list(found.retained(JOB)) == [1, 2, 2 | WITHDRAWN]
    assert found.sets([0])[0].withdrawn == Applied().plus(JOB, 1).plus(JOB, 2)


def test_a_store_that_is_opened_again_finds_the_same() -> None:
    disk = FakeDisk()
    found = store(by(HONEST, chunk=0), by(LIAR, chunk=1), by(LIAR, chunk=2), on=disk)
    found.release(JOB, [0, 1])
    assert done(found, listed(2)) == ([2], {1})
    found.close()
    with Store.open(disk, retain=True, spare=1 << 20) as again:
        assert done(again, listed(2)) == ([], {1})
        assert done(again, listed(1, 2)) == ([1], set())
        assert list(again.digests()) == comes_to([0])


NOBODY = Listed()


@pytest.mark.parametrize(
    ("search", "told"),
    [
        (Search(), set()),
        (Search(WithdrawalFilter.of([JOB], [], 0)), {1, 2, 3}),
        (Search(WithdrawalFilter.of([bytes(16)], [], 0)), set()),
        (Search(WithdrawalFilter.of([], [LIAR.peer], 0)), {2}),
        (Search(WithdrawalFilter.of([], [LIAR.peer, HONEST.peer], 0)), {1, 2, 3}),
        (
            Search(
                WithdrawalFilter.of([], [LIAR.peer], 0),
                disowned=lambda peer: peer == OTHER_LIAR.peer,
            ),
            {2},
        ),
        (
            Search(
                WithdrawalFilter(since=7),
                Applied().plus(JOB, 1).plus(JOB, 2),
                stands=lambda peer: peer == HONEST.peer,
            ),
            {2},
        ),
        (Search(WithdrawalFilter(since=7), Applied().plus(JOB, 3), stands=lambda peer: False), {3}),
    ],
)
def test_what_the_founder_looks_for_is_told(search: Search, told: set[int]) -> None:
    """Chunk 1 is an honest peer's, chunk 2 a liar's, chunk 3 both of them stand for."""
    found = store(by(HONEST, chunk=1), by(LIAR, chunk=2), by(LIAR, HONEST, chunk=3))
    assert done(found, NOBODY, search=search) == ([], told)


def test_what_was_looked_for_is_withdrawn_by_the_next_list_and_stays_so() -> None:
    found = store(by(HONEST, chunk=1), by(LIAR, chunk=2))
    gone = Listed(roots={(JOB, 2): LESSONS.tree(2).root})
    assert done(found, gone, number=2) == ([2], set())
    assert found.content(0).digest == store(by(HONEST, chunk=1)).content(0).digest
    again = Search(WithdrawalFilter.of([JOB], [], 0))
    assert done(found, gone, number=3, search=again) == ([], {1})
