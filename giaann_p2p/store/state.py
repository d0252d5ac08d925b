"""The state of a store, in memory, and the records whose replay reproduces it.

    HOLD      begin to hold shards, empty
    DROP      stop holding shards
    UPDATE    add a chunk to the given shards to which it is new; or withdraw it from them
    CONTENT   set the content of shards, with the chunks that add up to it
    NOTE      set the caller's value of a key
    RELEASE   stop archiving the deltas of some chunks for some shards
    DOUBLE    divide all shards, so that there is the given number of them

A log is a sequence of these records, and so is a snapshot, which has one CONTENT for each shard.
The shards that a record names are those of the layout at its place in the log.
Each shard has a set of applied chunks beside its content, and applies no chunk twice. So replay is
idempotent, even for records whose effect a snapshot already includes.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from giaann_p2p.errors import DamagedError, UsageError
from giaann_p2p.model.delta import Delta, total
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.store.applied import WITHDRAWN, Applied
from giaann_p2p.store.archive import Archive
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.store.content import Content, by_shard
from giaann_p2p.store.layout import MOST_SHARDS, Layout, Shards
from giaann_p2p.store.ledger import Ledger
from giaann_p2p.store.memory.columns import Columns
from giaann_p2p.store.memory.content import content
from giaann_p2p.store.memory.places import Places
from giaann_p2p.store.memory.shard import Shard
from giaann_p2p.store.records import Kind, content_of, doubled_to, noted, released, shards_of
from giaann_p2p.store.undisturbed import undisturbed
from giaann_p2p.store.union import Recall, beyond, united, withdrawn
from giaann_p2p.store.update import Update, check_delta, check_united, cut, update_of

_MOST = (1 << 31) - 1
_PART = 1 << 14
"""A part of a snapshot ends once it has this many connections. While a part is written or read,
each of its connections takes about 90 bytes of memory."""
_SMALL = 1 << 10
"""The most connections of a shard whose content is cached until the shard changes. The cache helps
audits, which ask a peer again and again to prove that it holds a shard, each time with a new
salt."""
_REMEMBERED = 128
"""The most shards whose content is cached; the cache takes 8 MB at most."""


class Captured(NamedTuple):
    """Some shards as they were at one moment, each with the chunks that it had applied."""

    numbers: list[int]
    shards: list[Shard]
    applied: list[Applied]
    columns: Columns
    """The columns that define the neuron numbers in the captured shards."""


class StoreState:
    """The state of a store: columns, applied chunks, the archive of deltas, and notes.

    Invariant: the columns of a shard are the sum of the chunks that it has applied.
    """

    def __init__(self, spec: ModelSpec, layout: Layout) -> None:
        self.spec = spec
        self.columns = Columns(layout, Places(spec.branches, spec.segments))
        self.ledger = Ledger(layout.shards)
        self.archive = Archive()
        self.notes: dict[str, bytes] = {}
        self.unbroken: set[int] = set()
        """The shards that were held when the last snapshot began, and were not dropped since."""
        self.limits = Limits(spec.branches, spec.segments, _MOST, _MOST, _MOST)
        self._of_one = lru_cache(maxsize=_REMEMBERED)(_content_of)

    @property
    def nbytes(self) -> int:
        """The approximate memory that the state takes, in bytes."""
        return self.columns.nbytes + self.ledger.nbytes + self.archive.nbytes

    @property
    def shards(self) -> Shards:
        """The shards that are held, ascending."""
        return self.ledger.shards

    def hold(self, shards: Sequence[int]) -> None:
        """Hold further shards, which are empty; shards that are held already stay unchanged."""
        self.check_shards(shards)
        for number in shards:
            if number not in self.ledger:
                self.columns.hold(number)
                self.ledger.hold(number, Applied())

    def check_shards(self, shards: Iterable[int]) -> None:
        """Raise UsageError if the layout does not have all of these shard numbers."""
        for number in shards:
            if not 0 <= number < self.columns.layout.shards:
                most = self.columns.layout.shards - 1
                raise UsageError(f"there is no shard {number}; they are numbered 0 to {most}")

    def check_doubling(self, shards: int) -> None:
        """Raise UsageError unless repeated doubling can reach this number of shards."""
        now = self.columns.layout.shards
        if not now < shards <= MOST_SHARDS or shards & (shards - 1):
            raise UsageError(
                f"{now} shards can become a larger power of two up to {MOST_SHARDS}, not {shards}"
            )

    def drop(self, shards: Iterable[int]) -> None:
        """Stop holding shards: remove their content, applied chunks and archived deltas."""
        gone = [number for number in shards if number in self.ledger]
        for number in gone:
            self.ledger.drop(number)
            self.columns.drop(number)
        self.archive.drop(gone)
        self.unbroken -= set(gone)

    def double(self, shards: int) -> None:
        """Divide all shards, so that their number becomes the given one, which must be larger."""
        self.columns.merge_all()  # first: if memory runs out, nothing is divided yet
        before = self.columns.layout.shards
        layout = self.columns.layout.with_shards(shards)
        self.ledger.double(shards // before)
        self.archive.double(before, shards)
        self.columns.double(layout)  # last: if memory runs out, the rest is divided when needed

    def planned(self, updates: Iterable[Update]) -> list[Shards]:
        """Return for each update the shards to which it is new.

        If one call has both a chunk and its withdrawal, a shard gets only the first of them.
        UsageError if a shard is not held; StoreError for a withdrawal of rows that the store does
        not have.
        """
        given: dict[tuple[bytes, int], Shards] = {}
        plan = []
        for update in updates:
            new = self.ledger.lacking(update.job, update.chunk, update.shards)
            chunk = update.job, update.chunk & ~WITHDRAWN
            if chunk in given:
                new = np.setdiff1d(new, given[chunk])
            given[chunk] = np.union1d(new, given[chunk]) if chunk in given else new
            if update.chunk >= WITHDRAWN:
                self._check_withdrawal(update, new)
            plan.append(new)
        return plan

    def add(self, update: Update, shards: Shards) -> None:
        """Apply an update to shards to which it is new: add its delta, or withdraw it."""
        if update.chunk >= WITHDRAWN:
            self._withdraw(update, shards)
        elif update.delta.neurons:  # a chunk may have no rows for some shards
            self.columns.add(update.delta, shards)
        self.ledger.add(update.job, update.chunk, shards)

    def _withdraw(self, update: Update, shards: Shards) -> None:
        """Subtract a chunk from the shards that have it, and mark it as applied in the others.

        Because of the mark, shards that lack the chunk will never apply it.
        """
        chunk = update.chunk - WITHDRAWN
        lacking = self.ledger.lacking(update.job, chunk, shards)
        self.columns.subtract(update.delta, np.setdiff1d(shards, lacking))
        self.ledger.add(update.job, chunk, lacking)

    def _check_withdrawal(self, update: Update, shards: Shards) -> None:
        """Raise StoreError unless a withdrawal can be subtracted from the shards with the chunk."""
        lacking = self.ledger.lacking(update.job, update.chunk - WITHDRAWN, shards)
        part = cut(update, np.setdiff1d(shards, lacking), self.columns.layout).delta
        rows = (part.count > 0) | (part.lengths > 0)
        held = self.columns.delta_of(part.concept[rows], part.feature[rows])
        withdrawn(held, part, update.chunk)

    def adopt(self, held: Content) -> None:
        """Replace the content of shards, and their sets of applied chunks."""
        self.columns.adopt(held.shards, held.delta)
        for number, applied in zip(held.shards.tolist(), held.applied, strict=True):
            self.ledger.hold(number, applied)

    def united(self, held: Content, recall: Recall) -> Content:
        """Return the union of some shards' content from elsewhere with their content here.

        If one set of chunks includes the other, the union is the larger content; if the sets are
        disjoint, it is the sum. Otherwise it is the content from elsewhere plus the deltas that it
        lacks. UsageError if these are not kept here, because a sum cannot be taken apart again.
        """
        self._check_content(held)
        parts = [self._united(one, recall) for one in by_shard(held, self.columns.layout)]
        for part in parts:
            check_united(part.delta)
        if len(parts) == 1:
            return parts[0]  # unchanged, so that a digest computed before is used again
        shards = np.concatenate([part.shards for part in parts])
        applied = [applied for part in parts for applied in part.applied]
        return Content(shards, applied, total([part.delta for part in parts]))

    def _united(self, theirs: Content, recall: Recall) -> Content:
        ours = self.content(self.capture(theirs.shards.tolist()))
        return united(ours, theirs, self.archive.of, recall)

    def needed(self, held: Content) -> list[tuple[int, bytes, int]]:
        """Return shard, job and chunk of each delta that `united` will recall.

        The content is not checked here.
        """
        found = []
        for shard, theirs in zip(held.shards.tolist(), held.applied, strict=False):
            if shard in self.ledger:
                ahead = beyond(self.ledger.of(shard), theirs)
                if ahead <= self.archive.of(shard):
                    found += [(shard, job, chunk) for job in ahead for chunk in ahead.of(job)]
        return found

    def _check_content(self, held: Content) -> None:
        shards = held.shards.tolist()
        self.check_shards(shards)
        check_delta(held.delta, self.spec)
        rows = (held.delta.count > 0) | (held.delta.lengths > 0)
        homes = self.columns.layout.shards_of(held.delta.concept[rows], held.delta.feature[rows])
        if len(set(shards)) < len(shards) or len(shards) != len(held.applied):
            raise UsageError("each shard may be given only once, with one set of chunks")
        if strange := set(np.unique(homes).tolist()) - set(shards):
            raise UsageError(f"the content has rows of other shards: {sorted(strange)}")

    def is_known(self, held: Content) -> bool:
        """Return whether the shards here have already applied all chunks of some content."""
        pairs = zip(held.shards.tolist(), held.applied, strict=True)
        return all(n in self.ledger and applied <= self.ledger.of(n) for n, applied in pairs)

    def capture(self, shards: Iterable[int]) -> Captured:
        """Merge and return the given shards as they are now, without shards that are not held."""
        shards = [number for number in shards if number in self.ledger]
        with undisturbed():
            merged = [(number, self.columns.merge(number)) for number in shards]
        held = [(number, shard) for number, shard in merged if shard]
        numbers = [number for number, _ in held]
        applied = list(self.ledger.some(numbers).values())
        return Captured(numbers, [shard for _, shard in held], applied, self.columns)

    def content(self, captured: Captured) -> Content:
        """Return the content of captured shards; safe in any thread, even during writes."""
        columns = captured.columns
        if len(captured.shards) == 1 and captured.shards[0].connections <= _SMALL:
            delta = self._of_one(captured.shards[0], columns, columns.renamed)
        else:
            delta = content(captured.shards, columns.neurons, columns.places, columns.names)
        return Content(np.array(captured.numbers, np.uint16), captured.applied, delta)

    def rebuild(self) -> None:
        """Rebuild the columns if at least half of the numbered neurons are in no held shard."""
        if 2 * self.columns.neurons_used > len(self.columns.neurons):
            return
        columns = Columns(self.columns.layout, self.columns.places)
        for part in self.parts(self.shards):
            held = self.content(self.capture(part))
            columns.adopt(held.shards, held.delta)
        self.columns = columns  # readers that have begun finish with the old columns
        self._of_one.cache_clear()  # the cache would keep the old columns alive

    def parts(self, shards: Shards) -> Iterator[list[int]]:
        """Split shards into parts that are small enough to be processed at once."""
        part: list[int] = []
        size = 0
        for number in shards.tolist():
            part.append(number)
            size += self.columns.size_of(number)
            if size >= _PART:
                yield part
                part, size = [], 0
        if part:
            yield part

    def replay(self, kind: int, payload: memoryview) -> None:
        """Apply a record of a log or snapshot; DamagedError or UsageError if it is invalid."""
        if kind == Kind.UPDATE:
            update = update_of(payload, self.limits)
            (fresh,) = self.planned([update])
            if len(fresh):
                self.add(update, fresh)
        elif kind == Kind.CONTENT:
            held = content_of(payload, self.limits)
            self.check_shards(held.shards.tolist())
            self.adopt(held)
        elif kind == Kind.NOTE:
            key, value = noted(payload)
            self.notes[key] = value
        elif kind == Kind.HOLD:
            self.hold(shards_of(payload))
        elif kind == Kind.DROP:
            self.drop(shards_of(payload))
        elif kind == Kind.RELEASE:
            self.archive.release(*released(payload))
        elif kind == Kind.DOUBLE:
            if (shards := doubled_to(payload)) != self.columns.layout.shards:
                self.check_doubling(shards)
                self.double(shards)
        else:
            raise DamagedError(f"a record has kind {kind}, which this version does not know")


def _content_of(shard: Shard, columns: Columns, renamed: int) -> Delta:
    """Return a shard's content; `StoreState` caches the results.

    `renamed` is only a part of the cache's key: a change of names invalidates cached content.
    """
    return content([shard], columns.neurons, columns.places, columns.names)
