"""Withdrawing what was learned by peers that are disowned: what a shard would be without them.

A chunk counts as long as anybody stands for it who is not disowned. Which ones that leaves out, the
founder's list says (`withdrawn`), by what most owners told it (`orphans`, `agreeing`). What is on
it is withdrawn by each owner that has its delta still, from its own shards; the others fetch that
from it as they fetch any chunk, and see by the same list that it may be, and that it is this. A
chunk that is withdrawn before it comes never comes. So all owners end with the same, in whatever
order they hear of it, and that is what the chunks come to that are left.
"""

from collections.abc import Iterator
from itertools import islice

from giaann_p2p.store.applied import WITHDRAWN
from giaann_p2p.store.kept import Kept
from giaann_p2p.store.seal import told
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Parcel, Update
from giaann_p2p.swarm.orphans import MOST_TOLD, Orphans
from giaann_p2p.swarm.voucher import Members, authors_of, is_disowned
from giaann_p2p.swarm.withdrawn import Chunk

_AT_ONCE = 16
"""Records that are looked at in one go: a store has other things to do, too."""


class Withdraw:
    """A deed that takes its time: done little by little, and over when nothing is left to do.

    It looks at all that a store remembers, once: what the list with a number has withdrawn goes,
    and what else only disowned peers stand for is found, to be told.
    """

    def __init__(self, members: Members, number: int, orphans: Orphans) -> None:
        self._members, self._number, self._orphans = members, number, orphans
        self._left: Iterator[Update | None] | None = None
        self._found = dict[Chunk, bytes]()
        self._honest = set[Chunk]()
        self._own = list[Update]()
        self.over = False

    def __repr__(self) -> str:
        return f"<Withdraw: {'over' if self.over else 'under way'}>"

    def next(self, store: Store) -> list[Update]:
        """Return what a store is to be told next; then `done` is to be called."""
        if self._left is None:
            self._left = self._looked_at(store)
        found = list(islice(self._left, _AT_ONCE))
        self.over = len(found) < _AT_ONCE
        return [update for update in found if update is not None]

    def done(self, store: Store) -> None:
        """Go on: what it was to be told, a store was told."""
        own, self._own = self._own, []
        for update in own:
            store.release(update.job, [update.chunk], update.shards.tolist())
        if self.over:
            left = sorted(self._found.keys() - self._honest)[:MOST_TOLD]
            self._orphans.found(self._number, {chunk: self._found[chunk] for chunk in left})

    def _looked_at(self, store: Store) -> Iterator[Update | None]:
        """Look at one record after the other; return what is to be withdrawn by it, or nothing."""
        for kept in store.kept():
            settled = kept.chunk >= WITHDRAWN or _is_withdrawn(store, kept)
            found = None if settled else store.parcel(kept)
            yield self._withdrawn(store, kept, found) if found else None

    def _withdrawn(self, store: Store, kept: Kept, found: Parcel) -> Update | None:
        listed = self._members.withdrawn.root_of(kept.job, kept.chunk)
        if not listed and not is_disowned(authors_of(found.seal), self._members):
            self._honest.add((kept.job, kept.chunk))
            return None
        shards, data, seal, _ = found
        number = kept.chunk | WITHDRAWN
        update = Update.received(kept.job, number, shards, data, store.limits, seal)
        root = told(update.delta, shards, store.layout, seal).root
        if not listed:
            self._found[kept.job, kept.chunk] = root
            return None
        if root != listed:  # a liar told others something else: they cannot do with this
            self._own.append(update)
        return update


def _is_withdrawn(store: Store, kept: Kept) -> bool:
    held = store.sets(kept.shards.tolist()).values()
    return all((kept.job, kept.chunk | WITHDRAWN) in one for one in held)
