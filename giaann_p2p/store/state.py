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

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property, lru_cache
from typing import Annotated, NamedTuple, TypeVar

import msgspec
import numpy as np
from pyroaring import BitMap

from giaann_p2p.errors import DamagedError, StoreError, UsageError
from giaann_p2p.model.delta import EMPTY, Delta, contains, total
from giaann_p2p.model.difference import less
from giaann_p2p.model.digest import digest
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.store.applied import WITHDRAWN, Applied
from giaann_p2p.store.archive import Archive
from giaann_p2p.store.codec.parcel import Limits, decode, encode
from giaann_p2p.store.layout import MOST_SHARDS, Layout, Shards
from giaann_p2p.store.ledger import Ledger
from giaann_p2p.store.memory.columns import Columns
from giaann_p2p.store.memory.content import content
from giaann_p2p.store.memory.places import Places
from giaann_p2p.store.memory.shard import Shard
from giaann_p2p.store.undisturbed import undisturbed
from giaann_p2p.store.update import Update, check_delta, cut, update_of

T = TypeVar("T")
_Shard = Annotated[int, msgspec.Meta(ge=0, lt=MOST_SHARDS)]
Recall = Callable[[int, bytes, int], Delta]
"""Reads back what a shard got from a chunk of a job."""

_MOST = (1 << 31) - 1
_PART = 1 << 14
"""Connections from which on the next shard begins another part of a snapshot. Each connection of a
part takes some 90 bytes while it is written or read."""


_SMALL = 1 << 10
"""Connections of a shard whose content is remembered, until it changes: who is to show that they
hold it are asked again and again, under one salt after the other."""
_REMEMBERED = 128
"""Such shards; 8 MB at most."""


class Kind(IntEnum):
    """Kinds of records."""

    HOLD = 1
    DROP = 2
    UPDATE = 3
    CONTENT = 4
    NOTE = 5
    RELEASE = 6


@dataclass(frozen=True, eq=False)
class Content:
    """What some shards hold, and the chunks that each of them got it from."""

    shards: Shards
    applied: list[Applied]
    delta: Delta
    parcel: bytes | memoryview = b""
    """The delta as it came, if it came as bytes; else it is made when it is needed."""

    @cached_property
    def digest(self) -> int:
        """Equal exactly for equal rows."""
        return digest(self.delta)


class Captured(NamedTuple):
    """Some shards as they were at one moment, with the chunks that each had taken in."""

    numbers: list[int]
    shards: list[Shard]
    applied: list[Applied]
    columns: Columns
    """Where neurons have the numbers that these shards use."""


class _ContentHead(msgspec.Struct, array_like=True):
    shards: list[_Shard]
    sets: list[bytes]
    which: list[int]
    """For each shard, which of the sets are its chunks."""
    digest: bytes


class _Note(msgspec.Struct, array_like=True):
    key: str
    value: bytes


class _Release(msgspec.Struct, array_like=True):
    job: bytes
    chunks: bytes
    shards: list[_Shard]


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
        _withdrawn(held, part, update.chunk)

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
        parts = [self._united(one, recall) for one in _by_shard(held, self.columns.layout)]
        if len(parts) == 1:
            return parts[0]  # with its digest, if that is known
        shards = np.concatenate([part.shards for part in parts])
        applied = [applied for part in parts for applied in part.applied]
        return Content(shards, applied, total([part.delta for part in parts]))

    def _united(self, theirs: Content, recall: Recall) -> Content:
        ours = self.content(self.capture(theirs.shards.tolist()))
        if not ours.applied:
            return theirs
        if ours.applied[0] == theirs.applied[0] and ours.digest != theirs.digest:
            raise StoreError(
                f"shard {theirs.shards[0]} here and elsewhere comes from the same chunks, "
                "but is not the same: one of them is wrong"
            )
        if ours.applied[0] <= theirs.applied[0]:
            return _with_all_of(ours, theirs)
        if theirs.applied[0] <= ours.applied[0]:
            return ours
        applied = ours.applied[0] | theirs.applied[0]
        if not ours.applied[0].meets(theirs.applied[0]):
            delta = total([ours.delta, theirs.delta])
        else:
            delta = self._with_ours(ours.applied[0], theirs, recall)
        return _with_all_of(ours, Content(theirs.shards, [applied], delta))

    def _with_ours(self, ours: Applied, theirs: Content, recall: Recall) -> Delta:
        """Return what a shard holds elsewhere, with our chunks added, and withdrawn, one by one."""
        shard, beyond = int(theirs.shards[0]), _beyond(ours, theirs.applied[0])
        if not beyond <= self.archive.of(shard):
            raise UsageError(
                f"shard {shard} here and what it is to take in have some chunks in "
                "common, and each has others"
            )
        chunks = [(job, chunk) for job in beyond for chunk in beyond.of(job)]
        added = [recall(shard, *one) for one in chunks if one[1] < WITHDRAWN]
        delta = total([*added, theirs.delta])
        for job, chunk in chunks:
            if chunk >= WITHDRAWN:
                delta = _withdrawn(delta, recall(shard, job, chunk), chunk)
        return delta

    def needed(self, held: Content) -> list[tuple[int, bytes, int]]:
        """Return shard, job and chunk of each delta that `united`, which checks, will ask for."""
        found = []
        for shard, theirs in zip(held.shards.tolist(), held.applied, strict=False):
            if shard in self.ledger:
                beyond = _beyond(self.ledger.of(shard), theirs)
                if beyond <= self.archive.of(shard):
                    found += [(shard, job, chunk) for job in beyond for chunk in beyond.of(job)]
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
            note = _decoded(payload, _Note)
            self.notes[note.key] = note.value
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


def _withdrawn(held: Delta, part: Delta, chunk: int) -> Delta:
    left = less(held, part)
    if left is None:
        raise StoreError(
            f"chunk {chunk - WITHDRAWN} cannot be withdrawn: what is here does not have all of it"
        )
    return left


def _with_all_of(ours: Content, united: Content) -> Content:
    """Return what is to take the place of what a shard holds; StoreError if that would lose some.

    What was learned only grows: whoever sends less than is here, of more chunks, sends wrong; but
    where chunks are withdrawn there that are not so here, less is what it should be.
    """
    there, here = united.applied[0], ours.applied[0]
    if (there.withdrawn - here.withdrawn).meets(here):
        return united
    if not contains(united.delta, ours.delta):
        raise StoreError(
            f"shard {united.shards[0]} elsewhere is said to come from chunks that are here, too, "
            "but lacks some of what is here: it is wrong"
        )
    return united


def _beyond(ours: Applied, theirs: Applied) -> Applied:
    """Return which of our chunks are to be added one by one: those that they lack, where some are
    in common and each has others; none where one's sum is part of the other, or apart from it.

    Nor what was withdrawn here and never was there.
    """
    if not ours.meets(theirs) or ours <= theirs or theirs <= ours:
        return Applied()
    beyond = ours - theirs
    nothing = beyond.withdrawn & beyond
    return beyond - nothing - nothing.withdrawals if nothing else beyond


def _by_shard(held: Content, layout: Layout) -> Iterator[Content]:
    """Cut checked content by shard; that of one, which is what others send, needs no cut."""
    if len(held.shards) == 1:
        yield held
        return
    shard = layout.shards_of(held.delta.concept, held.delta.feature)
    parts = held.delta.cut(shard.astype(np.int64))
    for number, applied in zip(held.shards.tolist(), held.applied, strict=True):
        yield Content(np.array([number], np.uint16), [applied], parts.get(number, EMPTY))


def content_record(held: Content) -> bytes:
    """Return the record of what some shards hold."""
    sets = list({id(applied): applied for applied in held.applied}.values())
    order = {id(applied): at for at, applied in enumerate(sets)}
    head = msgspec.msgpack.encode(
        _ContentHead(
            held.shards.tolist(),
            [applied.to_bytes() for applied in sets],
            [order[id(applied)] for applied in held.applied],
            held.digest.to_bytes(32, "little"),
        )
    )
    return b"".join([len(head).to_bytes(4, "little"), head, held.parcel or encode(held.delta)])


def content_of(record: memoryview, limits: Limits) -> Content:
    """Read what `content_record` wrote."""
    head, end = _content_head(record)
    sets = [Applied.from_bytes(data) for data in head.sets]
    if len(head.which) != len(head.shards) or not all(0 <= at < len(sets) for at in head.which):
        raise DamagedError("a record of shards without their chunks")
    applied = [sets[at] for at in head.which]
    return Content(np.array(head.shards, np.uint16), applied, decode(record[end:], limits))


def promised_digest(record: memoryview) -> int:
    """Return the digest that content had when it was written."""
    return int.from_bytes(_content_head(record)[0].digest, "little")


def _content_head(record: memoryview) -> tuple[_ContentHead, int]:
    end = 4 + int.from_bytes(record[:4], "little")
    return _decoded(record[4:end], _ContentHead), end


def note_record(key: str, value: bytes) -> bytes:
    """Return the record of a note."""
    return msgspec.msgpack.encode(_Note(key, value))


def shards_record(shards: Iterable[int]) -> bytes:
    """Return the record of shards to hold or to drop."""
    return msgspec.msgpack.encode([int(number) for number in shards])


def shards_of(record: memoryview) -> list[int]:
    """Read what `shards_record` wrote."""
    return _decoded(record, list[_Shard])


def release_record(job: bytes, chunks: BitMap, shards: Shards) -> bytes:
    """Return the record of chunks whose deltas for some shards are kept no longer."""
    return msgspec.msgpack.encode(_Release(job, chunks.serialize(), shards.tolist()))


def released(record: memoryview) -> tuple[bytes, BitMap, Shards]:
    """Read what `release_record` wrote."""
    found = _decoded(record, _Release)
    try:
        chunks = BitMap.deserialize(found.chunks)
    except (ValueError, IndexError) as error:
        raise DamagedError(f"a record that cannot be read: {error}") from None
    return found.job, chunks, np.array(found.shards, np.uint16)


def _decoded(data: memoryview, kind: type[T]) -> T:
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedError(f"a record that cannot be read: {error}") from None
