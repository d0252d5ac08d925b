"""Withdrawing what was learned by peers that are disowned: what a shard would be without them.

A chunk counts as long as anybody stands for it who is not disowned. What is withdrawn is withdrawn
by each owner that has its delta still, from its own shards, by the founder's word alone; the others
fetch that from it as they fetch any chunk, and see by the same word and the authors' signatures
that it may be. A chunk that is withdrawn before it comes never comes. So all owners end with the
same, in whatever order they hear of it, and that is what the chunks come to that are left.
"""

from collections.abc import Iterator
from itertools import islice

from giaann_p2p.errors import UsageError
from giaann_p2p.store.applied import WITHDRAWN
from giaann_p2p.store.kept import Kept
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from giaann_p2p.swarm.voucher import Members, authors_of, is_disowned

_AT_ONCE = 16
"""Records that are looked at in one go: a store has other things to do, too."""


class Withdraw:
    """A deed that takes its time: done little by little, and over when nothing is left to do."""

    def __init__(self, members: Members) -> None:
        self._members = members
        self._left: Iterator[Update | None] | None = None
        self.over = False

    def __repr__(self) -> str:
        return f"<Withdraw: {'over' if self.over else 'under way'}>"

    def next(self, store: Store) -> list[Update]:
        """Return what a store is to be told next."""
        if self._left is None:
            self._left = _looked_at(store, self._members)
        found = list(islice(self._left, _AT_ONCE))
        self.over = len(found) < _AT_ONCE
        return [update for update in found if update is not None]


def vet(store: Store, update: Update, members: Members) -> None:
    """Raise UsageError for a withdrawal of what somebody here stands for who is not disowned.

    A disowned peer can still sign, and give what it signs the name of a chunk that others taught.
    """
    if update.chunk < WITHDRAWN:
        return
    for kept in store.kept_of(update.job, update.chunk - WITHDRAWN):
        found = store.parcel(kept)
        if found and not is_disowned(authors_of(found.seal), members):
            raise UsageError(f"chunk {kept.chunk} was taught by others than those disowned")


def withdrawals(store: Store, members: Members) -> Iterator[Update]:
    """Return all that a store is to be told, of the chunks whose deltas it has."""
    return (update for update in _looked_at(store, members) if update is not None)


def _looked_at(store: Store, members: Members) -> Iterator[Update | None]:
    """Look at one record after the other; return what is to be withdrawn by it, or nothing."""
    for kept in store.kept():
        settled = kept.chunk >= WITHDRAWN or _is_withdrawn(store, kept)
        found = None if settled else store.parcel(kept)
        if found and is_disowned(authors_of(found.seal), members):
            number, (shards, data, seal, _) = kept.chunk | WITHDRAWN, found
            yield Update.received(kept.job, number, shards, data, store.limits, seal)
        else:
            yield None


def _is_withdrawn(store: Store, kept: Kept) -> bool:
    held = store.sets(kept.shards.tolist()).values()
    return all((kept.job, kept.chunk | WITHDRAWN) in one for one in held)
