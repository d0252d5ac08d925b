"""Answers to other peers' questions about a storage peer's content; they only read its store.

When the number of shards doubles, a peer divides its store in another thread, a moment before its
decisions follow. Until they do, reads still count shards as the decisions do, and any other
question about shards is refused as busy. That is checked once the answer is made: a layout only
grows, so if the store then still has the decisions' layout, it had that layout all along, and the
answer cannot present half of a shard as a whole one.
"""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from giaann_p2p.errors import GiaannError, MessageError, UsageError
from giaann_p2p.model.digest import DIGEST_BYTES
from giaann_p2p.model.row_slice import EVERYTHING, RowSlice
from giaann_p2p.model.rows import Neuron, Question, Row
from giaann_p2p.model.sequence import Ids
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.codec import plain, sheaf
from giaann_p2p.store.cuts import part_of
from giaann_p2p.store.layout import Layout, Shards, among
from giaann_p2p.store.store import Store
from giaann_p2p.store.transfer import Export
from giaann_p2p.swarm.replication.carried_deltas import CarriedDeltas
from giaann_p2p.swarm.replication.set_comparison import Sets, about, answer_to
from giaann_p2p.swarm.replication.shard_fingerprint import proofs
from giaann_p2p.swarm.wire.division import DIVIDING
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Counting, Message
from giaann_p2p.swarm.wire.messages import (
    MOST_BYTES,
    MOST_NOUNS,
    TOO_LONG,
    AskDigests,
    AskNouns,
    AskOrphans,
    AskPart,
    AskProof,
    Compare,
    Compared,
    Digest,
    Digests,
    Fetch,
    FetchCarried,
    Fetched,
    Nouns,
    Offer,
    Offered,
    Part,
    Piece,
    Proof,
    Refusal,
)
from giaann_p2p.swarm.wire.orphans import Orphans
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.row_mark import MARK_BYTES, SALT_BYTES
from giaann_p2p.swarm.wire.row_mark import mark as mark_of
from giaann_p2p.swarm.wire.row_messages import MOST_READ, AskColumn, Column, Read, ReadSlice, Rows
from giaann_p2p.swarm.wire.shardset import packed, unpacked

_MOST_EXPORTS = 256
"""Maximum number of cached exports: snapshots of shards that other peers download."""
_MOST_EXPORTED = 64 << 20
"""Maximum size of all cached exports together, in bytes. Exports are cached because several peers
may ask for the same one."""
_MOST_INLINE = 2 << 20
"""Maximum size of a shard's part that is sent along with an offer, in bytes."""
_MOST_FETCHED = 2 << 20
"""Maximum size of the deltas in one answer, in bytes; a larger delta is sent alone."""
_MOST_UNPACKED = 1 << 20
"""Number of bytes of deltas unpacked for one answer before it is cut short. Deltas are unpacked to
cut them to the requested shards. For this many bytes, that takes about 0.1 s, on a busy machine ten
times as long; the asking peer's timeout is a few seconds."""
_MOST_DIGESTED = 1 << 19
"""Number of connections digested for one answer before it is cut short; it takes about a second."""

_MOST_NAMED = 1 << 20
"""Maximum size of the names in one page of nouns, in bytes; a longer name is sent alone."""

_FEW = 4
"""Maximum number of rows in an answer that may use the plain encoding."""
_MOST_SENT = 1 << 20
"""Maximum number of connections in the rows of one answer, by a count of those that the store has
merged already. An answer of this size takes about 2 MB, and a few tenths of a second."""
_MOST_ROWS = MOST_BYTES - (1 << 16)
"""Maximum bytes of the rows of one answer."""
_FINE = 4
"""Number of halvings that any row may have. More are refused if they make a slice far smaller than
an answer may be, because each slice takes the time to read the whole row."""
_TOO_LONG = Refusal(f"{TOO_LONG}: these rows do not fit into one answer; ask for less at once")
_NUMBER = 8  # length of an encoded concept or feature, in bytes

StateOf = Callable[[int], ReplicaState]
_MOST_ALIKE = 1024
"""Maximum number of shards that a comparison in the event loop takes in, at about 1 µs each."""
NOBODY = Peer(b"")


class Answers:
    """Answers questions from one peer's store. Its proofs are bound to its name `me`.

    Deltas that the peer carries for others are sent, too. `shards` is the swarm's number of shards
    by the peer's decisions, to which `state_of` refers; 0 for the store's present number.
    """

    def __init__(
        self,
        store: Store,
        state_of: StateOf,
        me: Peer = NOBODY,
        orphans: Orphans | None = None,
        carried: CarriedDeltas | None = None,
        shards: int = 0,
    ) -> None:
        self._store, self._state_of, self._me = store, state_of, me
        self._layout = store.layout.with_shards(shards or store.layout.shards)
        self._carried = carried
        self._orphans = orphans or Orphans()
        self._captured: dict[int, ReplicaState] = {}
        """The states that `state_of` looks up, of answers that are `captured`."""
        self._exports: dict[int, Export] = {}
        self._none = self._packed(np.array([], np.uint16))

    def captured(self, question: Message) -> "Answers":
        """Return answers from the same store, for which the question's shards stay as they are now.

        Only these shards are looked at, because this runs in the event loop, and a swarm may have
        65,536 shards. A malformed question has none; it is refused before any state is needed.
        """
        states = {shard: self._state_of(shard) for shard in self._asked_for(question).tolist()}
        answers = Answers(self._store, states.__getitem__, self._me, shards=self._layout.shards)
        answers._captured = states
        return answers

    def _asked_for(self, question: Message) -> Shards:
        """Return the shards whose states the answer to a question depends on, in any order."""
        try:
            if isinstance(question, Compare | AskDigests):
                return self._shards(question.shards)
            if isinstance(question, Read | ReadSlice):
                return self._layout.shards_of(*_neurons_of(question))
        except GiaannError:
            return np.array([], np.uint16)
        raise UsageError(f"the states for a {type(question).__name__} cannot be captured")

    def serves_less_than(self, before: "Answers") -> bool:
        """Return whether a shard of a captured question has stopped serving since then."""
        now = self._state_of
        return any(was.serves and not now(shard).serves for shard, was in before._captured.items())

    def to(self, question: Message, doublings: int | None = None) -> Message:
        """Return the answer to a question, or a `Refusal` with the reason.

        `doublings` says how often the number of shards has doubled, as far as the asking peer
        knows; None if both peers count the same shards. Only a read may count other shards.
        """
        try:
            if isinstance(question, Read):
                return self._rows(question, self._asked_in(doublings))
            if isinstance(question, ReadSlice):
                return self._slice(question, self._asked_in(doublings))
            answer = self._to(question)
        except GiaannError as error:
            answer = Refusal(str(error))
        is_divided = self._store.layout.shards != self._layout.shards
        return DIVIDING if is_divided and isinstance(question, Counting) else answer

    def alike(self, question: Compare, held: Callable[[Sequence[int]], Sets]) -> Compared | None:
        """Return the answer to a comparison if no set differs, which is the usual case; else None.

        `held` returns the sets of some shards from a snapshot, so nothing here waits for the store.
        """
        if question.job is not None or len(question.marks) > _MOST_ALIKE:
            return None
        if self._store.layout.shards != self._layout.shards:
            return None
        try:
            shards = self._shards(question.shards).tolist()
        except GiaannError:
            return None
        if len(question.marks) != len(shards):
            return None
        sets, marks = held(shards), dict(zip(shards, question.marks, strict=True))
        if any(mine.digest != marks[shard] for shard, mine in sets.items()):
            return None
        return answer_to(question, shards, sets, self._state_of)

    def _asked_in(self, doublings: int | None) -> Layout:
        return self._layout if doublings is None else self._layout.doubled(doublings)

    def _to(self, question: Message) -> Message:
        if isinstance(question, AskColumn):
            return self._column(question)
        if isinstance(question, AskNouns):
            return self._nouns(question)
        if isinstance(question, Compare):
            return self._compared(question)
        if isinstance(question, Fetch):
            return self._fetched(question)
        if isinstance(question, FetchCarried):
            return self._fetched_carried(question)
        if isinstance(question, Offer):
            return self._offered(question)
        if isinstance(question, AskPart):
            return self._part(question)
        if isinstance(question, AskDigests):
            return self._digested(question)
        if isinstance(question, AskProof):
            return self._shown(question)
        if isinstance(question, AskOrphans):
            return self._orphans.page(question.number, question.page)
        raise MessageError(f"{type(question).__name__} is not a question")

    def _rows(self, question: Read, asked: Layout) -> Message:
        concept, feature = _neurons_of(question)
        same = self._same(question, list(map(Neuron, concept.tolist(), feature.tolist())))
        if same:
            concept, feature = np.delete(concept, same), np.delete(feature, same)
        rows = self._rows_of(concept, feature, asked)
        if isinstance(rows, Refusal):
            return rows
        return Rows(rows.parcel, rows.moved, np.array(same, "<u2").tobytes())

    def _slice(self, question: ReadSlice, asked: Layout) -> Message:
        within = RowSlice(question.halvings, question.number)
        return self._rows_of(*_neurons_of(question), asked, within)

    def _same(self, question: Read, neurons: list[Neuron]) -> list[int]:
        """Return the positions of the neurons whose rows have the mark in the question."""
        marks = question.marks
        marked = neurons[: len(marks) // MARK_BYTES]
        if len(marks) != MARK_BYTES * len(marked) or len({*marked}) < len(marked):
            raise MessageError(
                f"marks have {MARK_BYTES} bytes for each of the first neurons, all different;"
                f" this read has {len(marks)} bytes for {len(neurons)} neurons"
            )
        if len(question.salt) != (SALT_BYTES if marked else 0):
            raise MessageError(f"a read with marks has {SALT_BYTES} bytes of salt, others none")
        serves = cache(self._serves)
        same = list[int]()
        for at, neuron in enumerate(marked):
            row = None
            if serves(self._layout.shard_of(*neuron)):
                (row,) = self._store.read(Question([neuron]))
            told = marks[MARK_BYTES * at : MARK_BYTES * (at + 1)]
            if row and _is_told(row) and mark_of(row, question.salt) == told:
                same.append(at)
        return same

    def _rows_of(
        self, concept: Ids, feature: Ids, asked: Layout, within: RowSlice = EVERYTHING
    ) -> Rows | Refusal:
        """Return a slice of some neurons' rows, unless they are too long for one answer.

        The shards that this peer does not serve are numbered by the question's layout, `asked`.
        """
        connections = self._store.connections_of(concept, feature)
        if connections >> within.halvings > _MOST_SENT:
            return _TOO_LONG
        if within.halvings > _FINE and connections >> within.halvings < _MOST_SENT >> _FINE:
            raise UsageError("this slice is far smaller than an answer may be: ask for more")
        found = self._found(concept, feature, asked, within)
        return _TOO_LONG if len(found.parcel) > _MOST_ROWS else found

    def _found(self, concept: Ids, feature: Ids, asked: Layout, within: RowSlice) -> Rows:
        if len(concept) <= _FEW and not within.halvings:
            return self._few(list(map(Neuron, concept.tolist(), feature.tolist())), asked)
        shards, moved = self._layout.shards_of(concept, feature), self._none
        gone = [shard for shard in np.unique(shards).tolist() if not self._serves(shard)]
        if gone:
            away = np.isin(shards, gone)
            moved = _packed(asked.shards_of(concept[away], feature[away]), asked)
            concept, feature = concept[~away], feature[~away]
        return Rows(self._store.rows(concept, feature, within), moved)

    def _few(self, neurons: list[Neuron], asked: Layout) -> Rows:
        """Return a few neurons' rows, plainly encoded for speed unless the rows are long."""
        homes = [self._layout.shard_of(*neuron) for neuron in neurons]
        serves = {shard: self._serves(shard) for shard in sorted({*homes})}
        found = [neuron for neuron, shard in zip(neurons, homes, strict=True) if serves[shard]]
        read = self._store.read(Question(list(dict.fromkeys(found))))
        rows = [row for row in read if row and _is_told(row)]
        if sum(len(row.target) for row in rows) <= plain.MOST_CONNECTIONS:
            told = plain.encode(rows)
        else:
            named = np.array(found, np.uint64).reshape(-1, 2)
            told = self._store.rows(named[:, 0], named[:, 1])
        if all(serves.values()):  # the common case
            return Rows(told, self._none)
        moved = [
            asked.shard_of(*neuron)
            for neuron, shard in zip(neurons, homes, strict=True)
            if not serves[shard]
        ]
        return Rows(told, _packed(np.array(moved, np.uint16), asked))

    def _serves(self, shard: int) -> bool:
        return self._state_of(shard).serves

    def _column(self, question: AskColumn) -> Message:
        concept = int.from_bytes(question.concept, "little")
        return Column(self._store.features(concept, MOST_READ).tobytes())

    def _nouns(self, question: AskNouns) -> Message:
        """Return a page of a shard's nouns; slow, because each page lists all of them again."""
        if question.shard >= self._layout.shards or not self._serves(question.shard):
            raise UsageError(f"this peer does not serve shard {question.shard}")
        names, counts, left = list[str](), list[int](), _MOST_NAMED
        for noun in self._store.nouns(question.shard, frequent=question.frequent):
            if noun.name <= question.after:
                continue
            left -= len(noun.name.encode())
            if len(names) == MOST_NOUNS or (names and left < 0):
                break
            names.append(noun.name)
            counts.append(noun.occurrences)
        return Nouns(names, counts)

    def _compared(self, question: Compare) -> Message:
        shards = self._shards(question.shards).tolist()
        if len(question.marks) != len(shards):
            raise MessageError(
                f"a comparison has one mark for each shard;"
                f" this one has {len(question.marks)} marks for {len(shards)} shards"
            )
        held: Sets = self._store.sets(shards)
        if question.job is not None:
            held = about(question.job, held)
        return answer_to(question, shards, held, self._state_of)

    def _fetched(self, question: Fetch) -> Message:
        shards = self._shards(question.shards)
        wanted = Applied.received(question.chunks)
        here = shards[among(shards, self._store.shards)]
        if not len(here):
            raise UsageError("this peer holds none of these shards")
        store = self._store
        parcels_of = store.remembered if question.remembered else store.parcels
        gone = wanted - store.kept_for_all(here, wanted, question.remembered)
        pieces: list[Piece] = []
        size, most = 0, min(question.most, _MOST_FETCHED)
        unpacked = 0
        for job in wanted:
            for chunk in wanted.of(job) - gone.of(job):
                for parcel in parcels_of(job, chunk, here):
                    size += len(parcel.data) + parcel.seal.size
                    if pieces and size > most:
                        return Fetched(pieces, gone.to_bytes())
                    shards_told = self._packed(parcel.shards)
                    pieces.append(Piece(job, chunk, shards_told, parcel.data, parcel.seal))
                    unpacked += parcel.unpacked
                if unpacked > _MOST_UNPACKED:
                    return Fetched(pieces, gone.to_bytes())
        return Fetched(pieces, gone.to_bytes())

    def _fetched_carried(self, question: FetchCarried) -> Message:
        if self._carried is None:
            raise MessageError("this peer carries nothing")
        shards = self._shards(question.shards)
        piece = self._carried.piece(Peer(question.author), question.job, question.chunk, shards)
        return Fetched([piece], Applied().to_bytes())

    def _offered(self, question: Offer) -> Message:
        export = self._export(question.shard)
        # Read the chunks after the content: otherwise the content could have a chunk that is
        # missing from `kept` although its delta is retained.
        kept = self._store.retained_for(question.shard) & export.applied
        part = export.part(0) if export.manifest.parts else b""
        inline = part if len(part) <= min(question.most, _MOST_INLINE) else b""
        return Offered(export.manifest.to_bytes(), kept.to_bytes(), inline)

    def _export(self, shard: int) -> Export:
        """Return a snapshot of a shard for download, cached until the shard's chunks change."""
        export, mine = self._exports.pop(shard, None), self._store.sets([shard]).get(shard)
        if mine is None:
            raise UsageError(f"this peer does not hold shard {shard}")
        if export is None or export.applied != mine:
            held = self._store.content(shard)
            if not len(held.shards):
                raise UsageError(f"this peer does not hold shard {shard}")
            export = Export(held)
        self._exports[shard] = export
        while self._offers_too_much():
            del self._exports[next(iter(self._exports))]
        return export

    def _offers_too_much(self) -> bool:
        size = sum(export.size for export in self._exports.values())
        return len(self._exports) > 1 and (
            size > _MOST_EXPORTED or len(self._exports) > _MOST_EXPORTS
        )

    def _part(self, question: AskPart) -> Message:
        export = self._exports.get(question.shard)
        if export is None or export.manifest.digest != question.digest:
            raise UsageError(
                f"this snapshot of shard {question.shard} is not offered here; ask for a new offer"
            )
        return Part(export.part(question.number))

    def _digested(self, question: AskDigests) -> Message:
        """Digest the requested shards in order, until _MOST_DIGESTED connections are exceeded."""
        shards = self._shards(question.shards)
        found, size = list[Digest](), 0
        for shard in shards.tolist():
            if size > _MOST_DIGESTED:
                break
            found.append(self._digest(shard))
            size += found[-1].connections
        return Digests(self._packed(shards[: len(found)]), found)

    def _digest(self, shard: int) -> Digest:
        state, held = self._state_of(shard), self._store.content(shard)
        letter = state.value.encode()
        if not len(held.shards):
            return Digest(letter, b"", b"", 0, 0)
        content = held.digest.to_bytes(DIGEST_BYTES, "little")
        rows = int(np.count_nonzero(held.delta.count))
        chunks = held.applied[0].digest
        return Digest(letter, chunks, content, rows, held.delta.connections)

    def _shown(self, question: AskProof) -> Message:
        """Prove that this peer holds the first requested shards, up to a limit of work."""
        shards = self._shards(question.shards)
        chunks = Applied.received(question.chunks)
        found = proofs(self._store, shards.tolist(), chunks, question.salt, self._me)
        return Proof(self._packed(shards[: len(found)]), found)

    def _packed(self, shards: Shards) -> bytes:
        return packed(shards, self._layout.shards)

    def _shards(self, data: bytes) -> Shards:
        return unpacked(data, self._layout.shards)


def _packed(shards: Shards, layout: Layout) -> bytes:
    """Encode shards of a layout, given in any order and perhaps repeatedly."""
    return packed(np.unique(shards), layout.shards)


def size_of(answer: Rows) -> tuple[int, int]:
    """Return the number of rows and the number of connections in an answer."""
    if answer.parcel.startswith(plain.MAGIC):
        return plain.sizes_of(answer.parcel)
    sizes = sheaf.sizes_of(answer.parcel)
    return sizes.rows, sizes.connections


def _is_told(row: Row) -> bool:
    """Return whether a row may be in an answer: it has occurred, or is part of a cut column."""
    return row.count > 0 or part_of(row.name.concept) is not None


def _neurons_of(question: Read | ReadSlice) -> tuple[Ids, Ids]:
    """Return the concepts and the features of the neurons in a read; MessageError if malformed."""
    if isinstance(question, ReadSlice):
        return _numbers(question.concept), _numbers(question.feature)
    concept, feature = _numbers(question.concepts), _numbers(question.features)
    if len(concept) != len(feature) or len(concept) > MOST_READ:
        raise MessageError(
            f"a read has as many features as concepts, and at most {MOST_READ:,};"
            f" this one has {len(concept):,} concepts and {len(feature):,} features"
        )
    return concept, feature


def _numbers(data: bytes) -> Ids:
    """Decode an array of 64-bit numbers; MessageError if its length is not a multiple of 8."""
    if len(data) % _NUMBER:
        raise MessageError(f"{len(data)} bytes are no array of {_NUMBER}-byte numbers")
    return np.frombuffer(data, "<u8")
