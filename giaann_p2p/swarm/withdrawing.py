"""Withdrawing what was learned by peers that are disowned: what a shard would be without them.

A chunk counts as long as anybody stands for it who is not disowned. What is withdrawn is withdrawn
by each owner that has its delta still, from its own shards, by the founder's word alone; the others
fetch that from it as they fetch any chunk, and see by the same word and the authors' signatures
that it may be. A chunk that is withdrawn before it comes never comes. So all owners end with the
same, in whatever order they hear of it, and that is what the chunks come to that are left.
"""

from collections.abc import Iterator

from giaann_p2p.store.applied import WITHDRAWN
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from giaann_p2p.swarm.voucher import Members, authors_of, is_disowned


def withdrawals(store: Store, members: Members) -> Iterator[Update]:
    """Return what a store is to be told, of the chunks whose deltas it has."""
    for job, chunk in store.kept():
        if chunk >= WITHDRAWN:
            continue
        for shards, data, seal, _ in store.parcels(job, chunk, store.shards.tolist()):
            if is_disowned(authors_of(seal), members):
                number = chunk | WITHDRAWN
                yield Update.received(job, number, shards, data, store.limits, seal)
