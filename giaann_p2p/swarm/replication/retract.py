"""Withdrawal: an owner removes chunks that only disowned peers taught, as if never learned.

A chunk counts as long as one of its authors is not disowned. The founder's list (`withdrawn`) names
the chunks to withdraw, by the reports of most owners (`orphans`, `orphan_quorum`). Each owner that
still has a listed chunk's delta withdraws the chunk from its own shards. The other owners fetch the
withdrawal like any chunk, and check it against the same list. A chunk that is withdrawn before it
arrives is never applied. So all owners converge on the sum of the remaining chunks, whatever the
order of events.
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
"""Number of a store's records examined in one step. It is small, so that the store's other work is
not held up."""


class Withdraw:
    """One pass over all records of a store, in small steps; `over` becomes True at the end.

    The pass withdraws the chunks on the founder's list. Unlisted chunks that only disowned peers
    vouch for, or that the founder searches for, are collected as orphans. At the end they are
    reported to `orphans` under `number`, the number of the founder's list.
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
        """Return the next withdrawals; the caller applies them to the store, then calls `done`."""
        if self._left is None:
            self._left = self._looked_at(store)
        found = list(islice(self._left, _AT_ONCE))
        self.over = len(found) < _AT_ONCE
        return [update for update in found if update is not None]

    def done(self, store: Store) -> None:
        """Finish a step, once the store has applied the withdrawals that `next` returned."""
        own, self._own = self._own, []
        for update in own:
            store.release(update.job, [update.chunk], update.shards.tolist())
        if self.over:
            left = sorted(self._found.keys() - self._honest)[:MOST]  # the list has room for MOST
            self._orphans.found(self._number, {chunk: self._found[chunk] for chunk in left})

    def _looked_at(self, store: Store) -> Iterator[Update | None]:
        """Yield each record's withdrawal, or None for a record with nothing to withdraw."""
        for kept in store.kept():
            settled = kept.chunk >= WITHDRAWN or _is_withdrawn(store, kept)
            found = None if settled else store.parcel(kept)
            yield self._withdrawn(store, kept, found) if found else None

    def _is_sought(self, kept: Kept, authors: Collection[Peer]) -> bool:
        """Return whether to report a chunk with these authors to the founder as an orphan."""
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
        if root != listed:  # a liar sent the other owners another delta: do not pass this one on
            self._own.append(update)
        return update


def _is_withdrawn(store: Store, kept: Kept) -> bool:
    held = store.sets(kept.shards.tolist()).values()
    return all((kept.job, kept.chunk | WITHDRAWN) in one for one in held)
