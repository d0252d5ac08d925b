"""All that a store holds, in memory, and the records that make it: replayed, they make it again.

    HOLD      shards begin to be held, empty
    DROP      shards are let go
    UPDATE    a chunk is added to some shards, those to which it is new; or withdrawn from them
    CONTENT   shards get what they hold, with the chunks that it comes from
    NOTE      a word of the caller's under some key

A log is a sequence of these, and so is a snapshot, in which each shard has one CONTENT. Which
chunks a shard has taken in stands beside what it holds, and a chunk that it has is not taken in
again: so replaying a record twice, or one that a snapshot holds already, changes nothing.
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
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.store.ledger import Ledger
from giaann_p2p.store.memory.columns import Columns
from giaann_p2p.store.memory.content import content
from giaann_p2p.store.memory.places import Places
from giaann_p2p.store.memory.shard import Shard
from giaann_p2p.store.records import Kind, content_of, noted, released, shards_of
from giaann_p2p.store.undisturbed import undisturbed
from giaann_p2p.store.union import Recall, beyond, united, withdrawn
from giaann_p2p.store.update import Update, check_delta, cut, update_of

_MOST = (1 << 31) - 1
_PART = 1 << 14
"""Connections from which on the next shard begins another part of a snapshot. Each connection of a
part takes some 90 bytes while it is written or read."""
_SMALL = 1 << 10
"""Connections of a shard whose content is remembered, until it changes: who is to show that they
hold it are asked again and again, under one salt after the other."""
_REMEMBERED = 128
"""Such shards; 8 MB at most."""


class Captured(NamedTuple):
    """Some shards as they were at one moment, with the chunks that each had taken in."""

    numbers: list[int]
    shards: list[Shard]
    applied: list[Applied]
    columns: Columns
    """Where neurons have the numbers that these shards use."""


class State:
    """Columns, the chunks that they come from, and notes."""

    def __init__(self, spec: ModelSpec, layout: Layout) -> None:
        self.spec = spec
        self.columns = Columns(layout, Places(spec.branches, spec.segments))
        self.ledger = Ledger(layout.shards)
        self.archive = Archive()
        self.notes: dict[str, bytes] = {}
        self.limits = Limits(spec.branches, spec.segments, _MOST, _MOST, _MOST)
        self._of_one = lru_cache(maxsize=_REMEMBERED)(_content_of)

    @property
    def nbytes(self) -> int:
        """How much memory all takes, about."""
        return self.columns.nbytes + self.ledger.nbytes + self.archive.nbytes

    @property
    def shards(self) -> Shards:
        """The shards that are held, ascending."""
        return self.ledger.shards

    def hold(self, shards: Sequence[int]) -> None:
        """Begin to hold shards, empty; those that are held stay as they are."""
        self.check_shards(shards)
        for number in shards:
            if number not in self.ledger:
                self.columns.hold(number)
                self.ledger.hold(number, Applied())

    def check_shards(self, shards: Iterable[int]) -> None:
        """Raise UsageError for a shard that there is none."""
        for number in shards:
            if not 0 <= number < self.columns.layout.shards:
                most = self.columns.layout.shards - 1
                raise UsageError(f"there is no shard {number}; they are numbered 0 to {most}")

    def drop(self, shards: Iterable[int]) -> None:
        """Let shards go."""
        gone = [number for number in shards if number in self.ledger]
        for number in gone:
            self.ledger.drop(number)
            self.columns.drop(number)
        self.archive.drop(gone)

    def planned(self, updates: Iterable[Update]) -> list[Shards]:
        """Return for each update the shards to which it is new; UsageError if it cannot be.

        Of a chunk and its withdrawal the one that comes first is taken; StoreError for a withdrawal
        of what is not there.
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
        """Add an update to shards to which it is new, or withdraw what it adds."""
        if update.chunk >= WITHDRAWN:
            self._withdraw(update, shards)
        elif update.delta.neurons:  # a chunk may have nothing for some shards
            self.columns.add(update.delta, shards)
        self.ledger.add(update.job, update.chunk, shards)

    def _withdraw(self, update: Update, shards: Shards) -> None:
        """Let shards hold what they would without a chunk, which those that lack it never get."""
        chunk = update.chunk - WITHDRAWN
        lacking = self.ledger.lacking(update.job, chunk, shards)
        self.columns.subtract(update.delta, np.setdiff1d(shards, lacking))
        self.ledger.add(update.job, chunk, lacking)

    def _check_withdrawal(self, update: Update, shards: Shards) -> None:
        """Raise StoreError unless shards that have a chunk have got just this from it."""
        lacking = self.ledger.lacking(update.job, update.chunk - WITHDRAWN, shards)
        part = cut(update, np.setdiff1d(shards, lacking), self.columns.layout).delta
        rows = (part.count > 0) | (part.lengths > 0)
        held = self.columns.delta_of(part.concept[rows], part.feature[rows])
        withdrawn(held, part, update.chunk)

    def adopt(self, held: Content) -> None:
        """Let shards hold this, in the place of what they held."""
        self.columns.adopt(held.shards, held.delta)
        for number, applied in zip(held.shards.tolist(), held.applied, strict=True):
            self.ledger.hold(number, applied)

    def united(self, held: Content, recall: Recall) -> Content:
        """Return what shards hold elsewhere with what they hold here beyond that.

        Where all of one's chunks are among the other's, that is the other; where they have none in
        common, it is the sum. For the rest it is theirs and the deltas of what they lack, if these
        are kept; UsageError if not: sums cannot be told apart again.
        """
        self._check_content(held)
        parts = [self._united(one, recall) for one in by_shard(held, self.columns.layout)]
        if len(parts) == 1:
            return parts[0]  # with its digest, if that is known
        shards = np.concatenate([part.shards for part in parts])
        applied = [applied for part in parts for applied in part.applied]
        return Content(shards, applied, total([part.delta for part in parts]))

    def _united(self, theirs: Content, recall: Recall) -> Content:
        ours = self.content(self.capture(theirs.shards.tolist()))
        return united(ours, theirs, self.archive.of, recall)

    def needed(self, held: Content) -> list[tuple[int, bytes, int]]:
        """Return shard, job and chunk of each delta that `united`, which checks, will ask for."""
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
            raise UsageError("each shard's content comes once, with its set of chunks")
        if strange := set(np.unique(homes).tolist()) - set(shards):
            raise UsageError(f"content with rows of other shards: {sorted(strange)}")

    def is_known(self, held: Content) -> bool:
        """Tell whether the shards have taken in all the chunks that content comes from."""
        pairs = zip(held.shards.tolist(), held.applied, strict=True)
        return all(n in self.ledger and applied <= self.ledger.of(n) for n, applied in pairs)

    def capture(self, shards: Iterable[int]) -> Captured:
        """Return some shards, those of them that are held, as they are now."""
        shards = [number for number in shards if number in self.ledger]
        with undisturbed():
            merged = [(number, self.columns.merge(number)) for number in shards]
        held = [(number, shard) for number, shard in merged if shard]
        numbers = [number for number, _ in held]
        applied = list(self.ledger.some(numbers).values())
        return Captured(numbers, [shard for _, shard in held], applied, self.columns)

    def content(self, captured: Captured) -> Content:
        """Return what captured shards hold; any thread may ask, whatever is written meanwhile."""
        columns = captured.columns
        if len(captured.shards) == 1 and captured.shards[0].connections <= _SMALL:
            delta = self._of_one(captured.shards[0], columns, columns.renamed)
        else:
            delta = content(captured.shards, columns.neurons, columns.places, columns.names)
        return Content(np.array(captured.numbers, np.uint16), captured.applied, delta)

    def rebuild(self) -> None:
        """Put all into new columns if most neurons are those of shards that were dropped."""
        if 2 * self.columns.neurons_used > len(self.columns.neurons):
            return
        columns = Columns(self.columns.layout, self.columns.places)
        for part in self.parts(self.shards):
            held = self.content(self.capture(part))
            columns.adopt(held.shards, held.delta)
        self.columns = columns  # readers that began before end with the old ones
        self._of_one.cache_clear()  # or it would hold on to those

    def parts(self, shards: Shards) -> Iterator[list[int]]:
        """Cut shards into parts of a size to work on at once."""
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
        """Do what a record says; DamagedError or UsageError if it says nothing that can be."""
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
        else:
            raise DamagedError(f"a record of kind {kind}, which this version does not know")


def _content_of(shard: Shard, columns: Columns, renamed: int) -> Delta:
    """Return what a shard holds; it is the same as long as the shard and all names are."""
    return content([shard], columns.neurons, columns.places, columns.names)
