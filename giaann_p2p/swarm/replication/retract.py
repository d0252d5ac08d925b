"""Withdrawal of the chunks that only disowned peers taught, as if they had never been learned.

A chunk counts as long as it has one author that is not disowned. The founder's list (`withdrawn`)
names the other chunks, as most owners reported them (`orphans`, `orphan_quorum`). Each owner that
still has a listed chunk's delta withdraws it from its own shards; the other owners fetch the
withdrawal like any chunk, and check it against the same list. A chunk that is withdrawn before it
arrives is never applied. So all owners converge on the sum of the remaining chunks, whatever the
order.
"""

from collections.abc import Collection, Iterator
from itertools import islice

from giaann_p2p.store.applied import WITHDRAWN
from giaann_p2p.store.kept import Kept
from giaann_p2p.store.seal import told
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Parcel, Update
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.orphans import Orphans
from giaann_p2p.swarm.wire.voucher import Members, authors_of, is_disowned
from giaann_p2p.swarm.wire.withdrawal_filter import Search
from giaann_p2p.swarm.wire.withdrawn import MOST, Chunk

_NO_SEARCH = Search()
_AT_ONCE = 16
"""Number of records examined in one step, so that other work of the store is not held up."""


class Withdraw:
    """One pass over all records of a store, done in small steps; `over` is set when it is complete.

    Chunks on the founder's list with this number are withdrawn. Unlisted chunks that only disowned
    peers vouch for, or that the founder searches for, are collected as orphans to be reported.
    """

    def __init__(
        self, members: Members, number: int, orphans: Orphans, search: Search = _NO_SEARCH
    ) -> None:
        self._search = search
        self._members, self._number, self._orphans = members, number, orphans
        self._left: Iterator[Update | None] | None = None
        self._found = dict[Chunk, bytes]()
        self._honest = set[Chunk]()
        self._own = list[Update]()
        self.over = False

    def __repr__(self) -> str:
        return f"<Withdraw: {'over' if self.over else 'under way'}>"

    def next(self, store: Store) -> list[Update]:
        """Return the next withdrawals for the store to apply; the caller then calls `done`."""
        if self._left is None:
            self._left = self._looked_at(store)
        found = list(islice(self._left, _AT_ONCE))
        self.over = len(found) < _AT_ONCE
        return [update for update in found if update is not None]

    def done(self, store: Store) -> None:
        """Continue after the store has applied what `next` returned."""
        own, self._own = self._own, []
        for update in own:
            store.release(update.job, [update.chunk], update.shards.tolist())
        if self.over:
            left = sorted(self._found.keys() - self._honest)[:MOST]  # a list has room for no more
            self._orphans.found(self._number, {chunk: self._found[chunk] for chunk in left})

    def _looked_at(self, store: Store) -> Iterator[Update | None]:
        """Yield for each record its withdrawal, or None if there is nothing to withdraw."""
        for kept in store.kept():
            settled = kept.chunk >= WITHDRAWN or _is_withdrawn(store, kept)
            found = None if settled else store.parcel(kept)
            yield self._withdrawn(store, kept, found) if found else None

    def _is_sought(self, kept: Kept, authors: Collection[Peer]) -> bool:
        """Return whether a chunk is to be reported to the founder."""
        disowned = is_disowned(authors, self._members)
        return disowned or self._search.finds(kept.job, kept.chunk, authors)

    def _withdrawn(self, store: Store, kept: Kept, found: Parcel) -> Update | None:
        listed = self._members.withdrawn.root_of(kept.job, kept.chunk)
        if not listed and not self._is_sought(kept, authors_of(found.seal)):
            self._honest.add((kept.job, kept.chunk))
            return None
        shards, data, seal, _ = found
        number = kept.chunk | WITHDRAWN
        update = Update.received(kept.job, number, shards, data, store.limits, seal)
        root = told(update.delta, shards, store.layout, seal).root
        if not listed:
            self._found[kept.job, kept.chunk] = root
            return None
        if root != listed:  # a liar gave others another delta; they cannot use this one
            self._own.append(update)
        return update


def _is_withdrawn(store: Store, kept: Kept) -> bool:
    held = store.sets(kept.shards.tolist()).values()
    return all((kept.job, kept.chunk | WITHDRAWN) in one for one in held)
