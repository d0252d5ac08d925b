"""Answers to what peers ask, whatever it is."""

from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from giaann_p2p.errors import DiskError, MessageError, UsageError
from giaann_p2p.model.delta import total
from giaann_p2p.model.row_slice import whole
from giaann_p2p.model.rows import Neuron, Question
from giaann_p2p.store.applied import MOST_CHUNKS, Applied
from giaann_p2p.store.codec import plain, sheaf
from giaann_p2p.store.codec.parcel import decode
from giaann_p2p.store.content import Content
from giaann_p2p.store.cut_columns import cut_columns
from giaann_p2p.store.cuts import Cut
from giaann_p2p.store.store import Store
from giaann_p2p.store.transfer import Export, Import, Manifest
from giaann_p2p.store.update import Update
from giaann_p2p.swarm.replication import answers
from giaann_p2p.swarm.replication.answers import Answers
from giaann_p2p.swarm.replication.shard_fingerprint import proofs
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import (
    AskDigests,
    AskNouns,
    AskPart,
    AskProof,
    Compare,
    Compared,
    Digest,
    Digests,
    Fetch,
    Fetched,
    Nouns,
    Offer,
    Offered,
    Part,
    Proof,
    Push,
    Refusal,
)
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.row_mark import SALT_BYTES, mark
from giaann_p2p.swarm.wire.row_messages import Read, ReadSlice, Rows
from giaann_p2p.swarm.wire.shardset import packed, unpacked
from tests.helpers import assert_same
from tests.helpers_swarm import (
    JOB,
    LAYOUT,
    LESSONS,
    LIMITS,
    MESSAGES,
    SHARDS,
    A,
    applied,
    sent,
    shards,
    store,
    update,
)
from tests.unit.store.memory.test_columns import assert_row

ALL = packed(shards(*range(SHARDS)), SHARDS)
NEURONS = LESSONS.neurons(1)


def answering(held: Store, states: str = "rrrr") -> Answers:
    return Answers(held, lambda shard: ReplicaState(states[shard]))


def read(*neurons: Neuron) -> Read:
    concepts, features = np.array(neurons, "<u8").reshape(-1, 2).T
    return Read(concepts.tobytes(), features.tobytes())


def compare(*marks: bytes) -> Compare:
    return Compare(ALL, list(marks))


def fetch(numbers: list[int], *chunks: int) -> Fetch:
    return Fetch(packed(shards(*numbers), SHARDS), applied(*chunks).to_bytes())


def test_a_comparison_without_a_difference_is_answered_by_a_snapshot() -> None:
    held = store(chunks=[1, 2])
    answers, digest = answering(held, "rsdr"), applied(1, 2).digest
    same = compare(*[digest] * SHARDS)
    told = answers.alike(same, held.sets)
    assert told is not None
    assert not told.is_different
    assert told == answers.to(same)
    some = {shard: mine for shard, mine in held.sets(range(SHARDS)).items() if shard}
    none = answers.alike(same, lambda _: some)
    assert none is not None
    assert none.states == b"asdr"
    other = compare(digest, b"other", digest, digest)
    for question in (
        other,
        compare(digest),
        Compare(b"", []),
        Compare(ALL, [digest] * SHARDS, job=bytes(16)),
    ):
        assert answers.alike(question, held.sets) is None
    held.double(2 * SHARDS)
    assert answers.alike(same, held.sets) is None


def test_rows_are_those_of_the_store() -> None:
    held = store(chunks=[1, 2])
    said = answering(held).to(read(*NEURONS, Neuron(5, 0)))
    assert isinstance(said, Rows)
    assert unpacked(said.moved, SHARDS).tolist() == []
    found = sheaf.decode(said.parcel, LIMITS).read(Question(NEURONS))
    for row, wanted in zip(found, held.read(Question(NEURONS)), strict=True):
        assert row is not None
        assert wanted is not None
        assert (row.neuron, row.name, row.count) == (wanted.neuron, wanted.name, wanted.count)
        assert row.strength.sum() == wanted.strength.sum()


def test_nothing_is_a_question_too() -> None:
    said = answering(store()).to(Read(b"", b""))
    assert isinstance(said, Rows)
    assert not plain.decode(said.parcel, LIMITS).neurons


def test_a_few_rows_are_told_plainly_and_more_in_a_sheaf() -> None:
    held = store(chunks=[1, 2])
    several = NEURONS[:4]
    for asked in (several, [*several, several[0]][1:], [*several, Neuron(5, 0)][:4]):
        said = answering(held).to(read(*asked))
        assert isinstance(said, Rows)
        found = plain.decode(said.parcel, LIMITS)
        assert found.neurons == {*asked}
        for row, wanted in zip(
            found.read(Question(asked)), held.read(Question(asked)), strict=True
        ):
            assert_row(row, wanted)
    said = answering(held).to(read(*NEURONS[:5]))
    assert isinstance(said, Rows)
    assert sheaf.decode(said.parcel, LIMITS).neurons == {*NEURONS[:5]}


def test_a_row_that_never_occurred_is_told_of_parts_only() -> None:
    """A hostile compute peer may push one, and readers of earlier releases refuse it."""
    delta = LESSONS.delta(1)
    named = zip(delta.concept.tolist(), delta.feature.tolist(), strict=True)
    leads = [Neuron(*pair) for pair, n in zip(named, delta.lengths.tolist(), strict=True) if n]
    at = delta.find(*leads[0])
    part = cut_columns((Cut(delta.names[leads[0].concept], 2),))
    never = replace(delta, count=np.where(np.arange(delta.neurons) == at, 0, delta.count))
    (_, beside), held = part.parts(leads[0]), store()
    held.apply([Update(JOB, 9, held.shards, never), Update(JOB, 10, held.shards, part.cut(never))])
    for more, decoded in ((2, plain.decode), (6, sheaf.decode)):
        said = answering(held).to(read(leads[0], beside, *leads[1:more]))
        assert isinstance(said, Rows)
        assert decoded(said.parcel, LIMITS).neurons == {beside, *leads[1:more]}
    salt = bytes(SALT_BYTES)
    (row,) = held.read(Question(leads[:1]))
    assert row is not None
    said = answering(held).to(structs.replace(read(leads[0]), marks=mark(row, salt), salt=salt))
    assert isinstance(said, Rows)
    assert not said.same


def test_long_rows_are_told_in_a_sheaf_however_few(monkeypatch: pytest.MonkeyPatch) -> None:
    held = store(chunks=[1, 2])
    asked = NEURONS[:3]
    rows = [row for row in held.read(Question(asked)) if row]
    size = sum(len(row.target) for row in rows)
    for most, is_plain in ((size, True), (size - 1, False)):
        monkeypatch.setattr(plain, "MOST_CONNECTIONS", most)
        said = answering(held).to(read(*asked))
        assert isinstance(said, Rows)
        assert said.parcel.startswith(plain.MAGIC) is is_plain


def read_slice(neuron: Neuron, *within: int) -> ReadSlice:
    concept, feature = (number.to_bytes(8, "little") for number in neuron)
    return ReadSlice(concept, feature, *within)


@pytest.mark.parametrize("count", [1, 10])
def test_rows_that_are_too_long_for_an_answer_are_refused(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = store(chunks=[1, 2])
    asked = read(*NEURONS[:count])
    said = answering(held).to(asked)
    assert isinstance(said, Rows)
    monkeypatch.setattr(answers, "_MOST_ROWS", len(said.parcel))
    assert answering(held).to(asked) == said
    monkeypatch.setattr(answers, "_MOST_ROWS", len(said.parcel) - 1)
    refused = answering(held).to(asked)
    assert isinstance(refused, Refusal)
    assert refused.is_too_long
    assert not refused.is_busy


def test_rows_that_are_too_long_are_refused_before_they_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = store(chunks=[1, 2])
    held._state.columns.merge_all()
    (longest,) = sorted(NEURONS, key=lambda one: connections(held, one))[-1:]
    size = connections(held, longest)
    monkeypatch.setattr(answers, "_MOST_SENT", size)
    assert isinstance(answering(held).to(read(longest)), Rows)
    monkeypatch.setattr(answers, "_MOST_SENT", size // 2)
    with monkeypatch.context() as patched:
        patched.setattr(held, "rows", None)
        patched.setattr(held, "read", None)
        refused = answering(held).to(read(longest))
    assert isinstance(refused, Refusal)
    assert refused.is_too_long
    assert isinstance(answering(held).to(read_slice(longest, 1, 0)), Rows)


def connections(held: Store, neuron: Neuron) -> int:
    (row,) = held.read(Question([neuron]))
    return len(row.target) if row else 0


def test_the_slices_of_a_row_are_the_row() -> None:
    held = store(chunks=[1, 2])
    for neuron in (NEURONS[0], NEURONS[-1], Neuron(5, 0)):
        found = []
        for number in range(4):
            said = answering(held).to(read_slice(neuron, 2, number))
            assert isinstance(said, Rows)
            found += sheaf.decode(said.parcel, LIMITS).read(Question([neuron]))
        (row,) = held.read(Question([neuron]))
        assert_row(whole(found), row and structs.replace(row, numbers=None))


@pytest.mark.parametrize(("halvings", "is_refused"), [(4, False), (5, True), (16, True)])
def test_slices_far_smaller_than_an_answer_may_be_are_refused(
    halvings: int, is_refused: bool
) -> None:
    """Each takes the time to look through the whole row, and is no reason to ask for less."""
    said = answering(store(chunks=[1])).to(read_slice(NEURONS[0], halvings, 0))
    assert isinstance(said, Refusal if is_refused else Rows)
    assert not (isinstance(said, Refusal) and said.is_too_long)


def test_a_slice_of_a_row_that_is_not_served_here_is_not_told() -> None:
    home = LAYOUT.shard_of(*NEURONS[0])
    states = "".join("a" if shard == home else "r" for shard in range(SHARDS))
    said = answering(store(chunks=[1]), states).to(read_slice(NEURONS[0], 1, 1))
    assert isinstance(said, Rows)
    assert unpacked(said.moved, SHARDS).tolist() == [home]
    assert not sheaf.decode(said.parcel, LIMITS).neurons


@pytest.mark.parametrize("letter", "as")
def test_rows_of_shards_that_are_not_ready_are_not_told(letter: str) -> None:
    homes = {LAYOUT.shard_of(*neuron) for neuron in NEURONS}
    moved = min(homes)
    states = "".join(letter if shard == moved else "rd"[shard % 2] for shard in range(SHARDS))
    said = answering(store(chunks=[1]), states).to(read(*NEURONS))
    assert isinstance(said, Rows)
    assert unpacked(said.moved, SHARDS).tolist() == [moved]
    found = sheaf.decode(said.parcel, LIMITS)
    told = {LAYOUT.shard_of(*neuron) for neuron in found.neurons}
    assert told == homes - {moved}
    assert told


@pytest.mark.parametrize(
    ("question", "why"),
    [
        (Read(b"1234567", b"12345678"), "7 bytes are no array"),
        (Read(b"12345678", b"123456789"), "9 bytes are no array"),
        (Read(b"12345678", b""), "1 concepts and 0 features"),
        (Read(bytes(8 * 4097), bytes(8 * 4097)), "4,097 concepts"),
        (Compare(b"", []), "a set of shards"),
        (Compare(b"\3", []), "a set of shards"),
        (Compare(ALL, [b""] * 3), "3 marks for 4 shards"),
        (Compare(ALL, [b""] * 5), "5 marks for 4 shards"),
        (Fetch(b"\3", applied().to_bytes()), "a set of shards"),
        (Fetch(ALL, b"none"), "invalid set of chunks"),
        (Offer(SHARDS), "does not hold shard"),
        (Offer(1 << 70), "does not hold shard"),
        (Offer(-1), "does not hold shard"),
        (AskPart(0, bytes(32), 0), "not offered"),
        (AskPart(-1, bytes(32), 0), "not offered"),
        (Push(JOB, 0, ALL, b""), "Push is not a question"),
        (Refusal("no"), "Refusal is not a question"),
    ],
)
def test_what_cannot_be_answered_is_refused(question: Message, why: str) -> None:
    held = store(chunks=[1])
    before = held.sets(range(SHARDS))
    said = answering(held).to(question)
    assert isinstance(said, Refusal)
    assert why in said.reason
    assert held.sets(range(SHARDS)) == before


def test_whatever_is_asked_is_answered() -> None:
    for message in MESSAGES:
        assert isinstance(answering(store([1], [1]), "arsa").to(message), Message)


@pytest.mark.parametrize("error", [DiskError("torn"), UsageError("what"), MessageError("who")])
def test_what_the_store_cannot_do_is_refused(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = store(chunks=[1])

    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(held, "parcels", fails)
    assert answering(held).to(fetch([0], 1)) == Refusal(str(error))


def test_comparing_tells_only_what_is_not_the_same() -> None:
    held = store([0, 1, 2], [1])
    held.apply([update(2, 1, 2)])
    one, two = applied(1).digest, applied(1, 2).digest
    said = answering(held, "rsda").to(compare(one, one, b"", b""))
    assert said == Compared(b"rsda", [-1, 0, 0, -1], [applied(1, 2).to_bytes()])
    said = answering(held, "rsda").to(compare(two, two, two, two))
    assert said == Compared(b"rsda", [0, -1, -1, -1], [applied(1).to_bytes()])
    said = answering(held, "rsda").to(Compare(packed(shards(3, 2)[::-1], SHARDS), [b"", b"x"]))
    assert said == Compared(b"da", [0, -1], [applied(1, 2).to_bytes()])


def test_a_shard_that_the_store_has_not_yet_or_no_longer_is_absent() -> None:
    said = answering(store([1]), "rrrr").to(compare(b"", b"", b"", b""))
    assert said == Compared(b"araa", [-1, 0, -1, -1], [applied().to_bytes()])


def test_deltas_are_those_that_came() -> None:
    held = store([0, 1, 2], [1, 2, 3])
    said = sent(answering(held).to(fetch([1, 2, 3], 1, 3, 9)))
    assert isinstance(said, Fetched)
    assert Applied.from_bytes(said.gone) == applied(9)
    assert [(piece.job, piece.chunk) for piece in said.updates] == [(JOB, 1), (JOB, 3)]
    for piece in said.updates:
        assert unpacked(piece.shards, SHARDS).tolist() == [1, 2]
        wanted = total([LESSONS.part(piece.chunk, shard) for shard in (1, 2)])
        assert_same(decode(piece.parcel, LIMITS), wanted)


@pytest.mark.parametrize("kept_for", [0, 2])
def test_a_chunk_is_gone_if_it_is_gone_for_one_of_the_shards(kept_for: int) -> None:
    held = store(chunks=[1])
    held.apply([update(2, kept_for)])
    said = answering(held).to(fetch([0, 2], 1, 2))
    assert isinstance(said, Fetched)
    assert Applied.from_bytes(said.gone) == applied(2)
    assert [piece.chunk for piece in said.updates] == [1]


def test_an_answer_is_full_before_it_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    held = store(chunks=range(6))
    said = answering(held).to(fetch([0, 1, 2, 3], *range(6)))
    assert isinstance(said, Fetched)
    assert len(said.updates) == 6
    sizes = [len(piece.parcel) for piece in said.updates]
    for count in (1, 3, 5):
        monkeypatch.setattr(answers, "_MOST_FETCHED", sum(sizes[:count]))
        said = answering(held).to(fetch([0, 1, 2, 3], *range(6)))
        assert isinstance(said, Fetched)
        assert [len(piece.parcel) for piece in said.updates] == sizes[:count]
    monkeypatch.setattr(answers, "_MOST_FETCHED", 1)  # one that is larger still goes, alone
    said = answering(held).to(fetch([0, 1, 2, 3], *range(6)))
    assert isinstance(said, Fetched)
    assert len(said.updates) == 1


def test_no_more_deltas_come_at_once_than_were_asked_for() -> None:
    one, question = answering(store(chunks=range(6))), fetch([0, 1, 2, 3], *range(6))
    everything = one.to(question)
    assert isinstance(everything, Fetched)
    sizes = [len(piece.parcel) for piece in everything.updates]
    for most, count in ((0, 1), (sizes[0], 1), (sum(sizes[:3]), 3), (sum(sizes[:4]) - 1, 3)):
        said = one.to(Fetch(question.shards, question.chunks, most))
        assert isinstance(said, Fetched)
        assert [len(piece.parcel) for piece in said.updates] == sizes[:count]


def test_a_part_comes_with_an_offer_if_it_is_no_longer_than_was_asked_for() -> None:
    held = store(chunks=range(5))
    one, part = answering(held), Export(held.content(2)).part(0)
    for most, comes in ((len(part), part), (len(part) - 1, b""), (0, b"")):
        said = one.to(Offer(2, most))
        assert isinstance(said, Offered)
        assert said.part == comes


def test_an_answer_for_which_much_is_unpacked_is_soon_full(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(*numbers: int) -> list[int]:
        said = answering(held).to(fetch(list(numbers), *range(6)))
        assert isinstance(said, Fetched)
        return [piece.chunk for piece in said.updates]

    held = store(chunks=range(6))
    sizes = [held.parcels(JOB, chunk, [1])[0].unpacked for chunk in range(6)]
    for count in (1, 3, 5):
        monkeypatch.setattr(answers, "_MOST_UNPACKED", sum(sizes[:count]) - 1)
        assert told(1) == list(range(count))
        assert told(0, 1, 2, 3) == list(range(6))  # passed on as they stand


def test_who_asks_for_all_chunks_of_what_is_not_here_is_not_kept_busy() -> None:
    endless = Applied()
    endless = endless.plus(JOB, 0)
    endless.of(JOB).add_range(0, MOST_CHUNKS)
    for numbers in ([], [3]):
        question = Fetch(packed(shards(*numbers), SHARDS), endless.to_bytes())
        said = answering(store([0], [1])).to(question)
        assert isinstance(said, Refusal)
        assert "holds none of these shards" in said.reason
    said = answering(store([0], [1])).to(Fetch(ALL, endless.to_bytes()))
    assert isinstance(said, Fetched)
    assert [piece.chunk for piece in said.updates] == [1]


def test_a_whole_shard_is_offered_and_sent() -> None:
    held = store(chunks=range(5))
    one = answering(held)
    said = one.to(Offer(2))
    assert isinstance(said, Offered)
    manifest = Manifest.from_bytes(said.manifest)
    taken = Import(manifest, LIMITS)
    held.apply([update(9, 2)])  # what is offered stays as it was
    for number in taken.missing:
        part = one.to(AskPart(2, manifest.digest, number))
        assert isinstance(part, Part)
        taken.take(number, part.parcel)
    assert taken.content().applied == [applied(*range(5))]
    for question in (AskPart(2, manifest.digest, len(manifest.parts)),
                     AskPart(2, manifest.digest, -1),
                     AskPart(2, manifest.digest[1:], 0),
                     AskPart(1, manifest.digest, 0)):  # fmt: skip
        assert isinstance(one.to(question), Refusal)
    one.to(Offer(2))
    assert isinstance(one.to(AskPart(2, manifest.digest, 0)), Refusal)  # there is a newer one


def test_what_is_offered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    held = store(chunks=range(5))
    sizes = [Export(held.content(shard)).size for shard in range(SHARDS)]
    one = answering(held)
    for shard in (0, 1, 2, 3, 0):
        one.to(Offer(shard))
    assert list(one._exports) == [1, 2, 3, 0]
    monkeypatch.setattr(answers, "_MOST_EXPORTS", 3)
    one.to(Offer(0))
    assert list(one._exports) == [2, 3, 0]
    monkeypatch.setattr(answers, "_MOST_EXPORTED", sizes[0] + sizes[1])
    one.to(Offer(1))
    assert list(one._exports) == [0, 1]
    monkeypatch.setattr(answers, "_MOST_EXPORTED", 0)
    one.to(Offer(2))
    assert list(one._exports) == [2]  # the last one stays, however large it is


def test_a_shard_is_made_ready_once_for_all_who_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    held = store(chunks=range(5))
    one = answering(held)
    first = one.to(Offer(2))
    with monkeypatch.context() as patched:
        patched.delattr(answers, "Export")
        assert one.to(Offer(2)) == first
    held.apply([update(9, 2)])
    assert one.to(Offer(2)) != first
    held.drop([2])
    assert isinstance(one.to(Offer(2)), Refusal)


def test_an_offer_tells_which_of_its_chunks_are_kept_and_brings_the_first_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = store([2], chunks=range(5))
    held.release(JOB, [1, 3])
    one, export = answering(held), Export(held.content(2))
    assert one.to(Offer(2)) == Offered(
        export.manifest.to_bytes(), applied(0, 2, 4).to_bytes(), export.part(0)
    )
    monkeypatch.setattr(answers, "_MOST_INLINE", len(export.part(0)) - 1)
    said = one.to(Offer(2))
    assert isinstance(said, Offered)
    assert said.part == b""
    held.hold([1])
    assert answering(held).to(Offer(1)) == Offered(
        Export(held.content(1)).manifest.to_bytes(), applied().to_bytes(), b""
    )


def test_a_chunk_that_comes_while_a_shard_is_made_ready_is_named_as_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = store(chunks=range(2))
    content = held.content

    def late(*shards: int) -> Content:
        held.apply([update(9, *shards)])
        return content(*shards)

    def too_late(*shards: int) -> Content:
        found = content(*shards)
        held.apply([update(8, *shards)])
        return found

    for patched, told in ((late, applied(0, 1, 9)), (too_late, applied(0, 1))):
        monkeypatch.setattr(held, "content", patched)
        said = answering(held).to(Offer(1 if patched is late else 2))
        assert isinstance(said, Offered)
        assert Manifest.from_bytes(said.manifest).applied == told.to_bytes()
        assert Applied.from_bytes(said.kept) == told


def test_what_is_held_is_shown_in_ones_own_name() -> None:
    held, salt = store([0, 2], [1, 2]), b"salt of a test.."
    said = Answers(held, lambda shard: ReplicaState.READY, A).to(
        AskProof(ALL, applied(1).to_bytes(), salt)
    )
    found = proofs(held, range(SHARDS), applied(1), salt, A)
    assert said == Proof(ALL, found)
    assert [bool(one) for one in found] == [True, False, True, False]
    for question in (
        AskProof(b"\7", applied(1).to_bytes(), salt),
        AskProof(ALL, b"no set", salt),
    ):
        assert isinstance(answering(held).to(question), Refusal)


def test_replicas_are_digested(monkeypatch: pytest.MonkeyPatch) -> None:
    held = store([0, 2, 3], [1, 2])
    one = answering(held, "rasd")
    said = one.to(AskDigests(ALL))
    assert isinstance(said, Digests)
    assert unpacked(said.shards, SHARDS).tolist() == [0, 1, 2, 3]
    assert [found.state for found in said.found] == [b"r", b"a", b"s", b"d"]
    assert said.found[1] == Digest(b"a", b"", b"", 0, 0)
    for shard in (0, 2, 3):
        content, found = held.content(shard), said.found[shard]
        assert found.chunks == applied(1, 2).digest
        assert int.from_bytes(found.content, "little") == content.digest
        assert found.connections == content.delta.connections
        assert found.rows == np.count_nonzero(content.delta.count)
    monkeypatch.setattr(answers, "_MOST_DIGESTED", said.found[0].connections - 1)
    some = one.to(AskDigests(ALL))
    assert some == Digests(packed(shards(0), SHARDS), said.found[:1])


def test_nouns_are_listed_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    held = store(chunks=range(4))
    here = answering(held)
    for shard in range(SHARDS):
        expected = held.nouns(shard)
        monkeypatch.setattr(answers, "MOST_NOUNS", 2)
        found, after = list[tuple[str, int]](), ""
        while True:
            page = sent(here.to(AskNouns(shard, after)))
            assert isinstance(page, Nouns)
            assert len(page.names) <= 2
            if not page.names:
                break
            found += zip(page.names, page.counts, strict=True)
            after = page.names[-1]
        assert found == expected
        monkeypatch.setattr(answers, "_MOST_NAMED", 1)  # each name is too long
        page = here.to(AskNouns(shard))
        assert isinstance(page, Nouns)
        assert page.names == [noun.name for noun in expected[:1]]
    assert sum(len(held.nouns(shard)) for shard in range(SHARDS)) == len(held.nouns()) > SHARDS
    assert all(noun.occurrences > 0 for noun in held.nouns())


@pytest.mark.parametrize("most", [1, 2, 3, 64])
def test_the_most_frequent_nouns_are_one_page(most: int) -> None:
    held = store(chunks=range(4))
    here = answering(held)
    for shard in range(SHARDS):
        ranked = sorted(held.nouns(shard), key=lambda noun: (-noun.occurrences, noun.name))
        page = sent(here.to(AskNouns(shard, frequent=most)))
        assert isinstance(page, Nouns)
        assert list(zip(page.names, page.counts, strict=True)) == sorted(ranked[:most])


def test_nouns_of_shards_that_are_not_served_are_not_listed() -> None:
    for asked in (AskNouns(1), AskNouns(SHARDS)):
        answer = answering(store(chunks=[1]), "rsrr").to(asked)
        assert isinstance(answer, Refusal)
        assert f"does not serve shard {asked.shard}" in answer.reason
