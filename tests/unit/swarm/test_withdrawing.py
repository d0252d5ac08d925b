"""What is withdrawn of disowned peers' work, and that nothing else is, whoever says so."""

import numpy as np
import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.store.applied import WITHDRAWN
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from giaann_p2p.swarm.identity import Identity, Peer
from giaann_p2p.swarm.voucher import sealing, vouched
from giaann_p2p.swarm.withdrawing import Withdraw, vet, withdrawals
from tests.helpers_swarm import AUTHORS, JOB, LAYOUT, LESSONS, SHARDS, SPEC, SWARM_ID

ALL = np.arange(SHARDS, dtype=np.uint16)
HONEST, LIAR, OTHER_LIAR = AUTHORS[:3]


class Founder:
    """Disowns the liars."""

    def authored(self, peer: Peer, token: bytes) -> str:
        return ""

    def disowned(self, peer: Peer) -> bool:
        return peer in (LIAR.peer, OTHER_LIAR.peer)


def by(*authors: Identity, chunk: int, back: int = 0) -> Update:
    tree = LESSONS.tree(chunk)
    said = [vouched(author, SWARM_ID, JOB, chunk, tree.root) for author in authors]
    return Update(JOB, chunk | back, ALL, LESSONS.delta(chunk), b"", sealing(said, tree)(ALL))


def store(*updates: Update) -> Store:
    made = Store.in_memory(SPEC, LAYOUT, retain=True)
    made.hold(range(SHARDS))
    made.apply(updates)
    return made


def test_what_liars_alone_stand_for_is_withdrawn() -> None:
    found = store(
        by(HONEST, chunk=0),
        by(LIAR, chunk=1),
        by(LIAR, HONEST, chunk=2),
        by(LIAR, OTHER_LIAR, chunk=3),
    )
    told = list(withdrawals(found, Founder()))
    assert [one.chunk for one in told] == [1 | WITHDRAWN, 3 | WITHDRAWN]
    found.apply(told)
    assert list(found.digests()) == list(store(by(HONEST, chunk=0), by(HONEST, chunk=2)).digests())
    assert list(withdrawals(found, Founder())) == []


def test_it_is_done_little_by_little() -> None:
    found, deed = store(*[by(LIAR, chunk=chunk) for chunk in range(20)]), Withdraw(Founder())
    assert repr(deed) == "<Withdraw: under way>"
    sizes = []
    while not deed.over:
        sizes.append(len(told := deed.next(found)))
        found.apply(told)
    assert sizes == [16, 4]
    assert found.digest() == 0


def test_so_many_records_are_looked_at_whether_liars_stand_for_them_or_not() -> None:
    taught = [by(HONEST if chunk < 18 else LIAR, chunk=chunk) for chunk in range(20)]
    found, deed = store(*taught), Withdraw(Founder())
    assert [len(deed.next(found)), deed.over] == [0, False]
    assert [len(deed.next(found)), deed.over] == [2, True]


def test_a_liar_cannot_withdraw_what_others_taught() -> None:
    """Its own name is disowned, so whatever it signs may be withdrawn; but it is not there."""
    found = store(by(HONEST, chunk=0), by(LIAR, chunk=1))
    vet(found, by(LIAR, chunk=1, back=WITHDRAWN), Founder())
    vet(found, by(LIAR, chunk=5, back=WITHDRAWN), Founder())
    vet(found, by(LIAR, chunk=0), Founder())
    with pytest.raises(UsageError, match="chunk 0 was taught by others than those disowned"):
        vet(found, by(LIAR, chunk=0, back=WITHDRAWN), Founder())
