"""Weights of replicas, as they are and as they were, and what shows that they are held."""

import numpy as np
import pytest

from giaann_p2p.model.delta import total
from giaann_p2p.model.fingerprint import Fingerprint, fingerprint
from giaann_p2p.store.applied import WITHDRAWN, Applied
from giaann_p2p.store.content import Content
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.replication import shard_fingerprint
from giaann_p2p.swarm.replication.shard_fingerprint import PROOF_BYTES, proof_of, proofs, weighed
from tests.helpers_swarm import JOB, LESSONS, OTHER_JOB, A, B, applied, store, update

SALT = b"salt of a test.."
SHARD = 0


def of(*chunks: int) -> Fingerprint:
    """Return what some chunks weigh in the shard."""
    return fingerprint(total([LESSONS.part(chunk, SHARD) for chunk in chunks]), SALT)


def shown(held: Store, chunks: Applied, shard: int = SHARD) -> bytes:
    (found,) = proofs(held, [shard], chunks, SALT, A)
    return found


def test_shards_are_weighed_as_they_are_now(monkeypatch: pytest.MonkeyPatch) -> None:
    held = store([0, 1, 3], [4, 5])
    found = weighed(held, [0, 1, 2, 3], SALT)
    assert list(found) == [0, 1, 3]
    assert all(weight.chunks == applied(4, 5) for weight in found.values())
    assert np.array_equal(found[SHARD].print, of(4, 5))
    first = held.content(0).delta.connections
    monkeypatch.setattr(shard_fingerprint, "MOST_WEIGHED", first - 1)
    assert list(weighed(held, [0, 1, 2, 3], SALT)) == [0]


def test_a_proof_is_of_use_to_nobody_else() -> None:
    one = proof_of(of(4), A)
    assert len(one) == PROOF_BYTES
    assert len({one, proof_of(of(4), B), proof_of(of(5), A)}) == 3


def test_what_is_held_is_shown() -> None:
    held = store(chunks=[4, 5])
    assert shown(held, applied(4, 5)) == proof_of(of(4, 5), A)
    other = proofs(held, [SHARD], applied(4, 5), bytes(16), A)
    assert other not in ([b""], [shown(held, applied(4, 5))])


@pytest.mark.parametrize("chunks", [(), (4,), (4, 5), (4, 5, 6), (7,)])
def test_what_was_held_before_the_last_chunks_is_shown(chunks: tuple[int, ...]) -> None:
    held = store(chunks=[4, 5, 6, 7])
    assert shown(held, applied(*chunks)) == proof_of(of(*chunks), A)


def test_chunks_of_several_jobs_are_taken_away() -> None:
    held = store(chunks=[4, 5])
    held.apply([update(9, *range(4), job=OTHER_JOB)])
    assert shown(held, applied(4)) == proof_of(of(4), A)
    assert shown(held, applied(9, job=OTHER_JOB)) == proof_of(of(9), A)


@pytest.mark.parametrize(
    ("chunks", "is_shown"),
    [((4, 5, 6, 7), True), ((5, 6, 7), False), ((4,), True), ((5, 6), True), ((4, 5), True)],
)
def test_what_is_not_kept_cannot_be_taken_away(chunks: tuple[int, ...], is_shown: bool) -> None:
    held = store(chunks=[4, 5, 6, 7])
    held.release(JOB, [4])  # what would have to be taken away, or added up
    assert bool(shown(held, applied(*chunks))) is is_shown


@pytest.mark.parametrize(
    ("chunks", "left"),
    [
        ((4, 5, 6, 7, 5 | WITHDRAWN), (4, 6, 7)),
        ((4, 5, 5 | WITHDRAWN), (4,)),
        ((5, 5 | WITHDRAWN), ()),
        ((4, 6), (4, 6)),  # 5 came and went
        ((4, 5), (4, 5)),  # these few are added up: their deltas are at hand
        ((4, 5, 6), None),  # what nobody has any more
    ],
)
def test_what_was_withdrawn_weighs_nothing(
    chunks: tuple[int, ...], left: tuple[int, ...] | None
) -> None:
    held = store(chunks=[4, 5, 6, 7])
    held.apply([update(5 | WITHDRAWN, *range(4))._replace(delta=LESSONS.delta(5), parcel=b"")])
    wanted = b"" if left is None else proof_of(of(*left), A)
    assert shown(held, applied(*chunks)) == wanted


def test_what_is_lacking_is_not_shown() -> None:
    held = store([0, 1], [4])
    assert shown(held, applied(4, 5)) == b""
    assert shown(held, applied(4), shard=2) == b""  # it is not held
    assert shown(held, Applied(), shard=2) == b""


def test_too_many_chunks_are_not_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    held = store(chunks=range(5))
    monkeypatch.setattr(shard_fingerprint, "_MOST_DELTAS", 2)
    assert shown(held, applied(0, 1, 2)) == proof_of(of(0, 1, 2), A)
    assert shown(held, applied(0, 1)) == proof_of(of(0, 1), A)
    monkeypatch.setattr(shard_fingerprint, "_MOST_DELTAS", 1)
    assert shown(held, applied(0, 1, 2)) == b""


def test_only_so_much_is_shown_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks for a lot keeps a thread for no longer than that."""
    held = store(chunks=[4, 5])
    assert len(proofs(held, range(4), applied(4, 5), SALT, A)) == 4
    monkeypatch.setattr(shard_fingerprint, "MOST_WEIGHED", 2 * held.content(0).delta.connections)
    assert 1 <= len(proofs(held, range(4), applied(4, 5), SALT, A)) < 4
    monkeypatch.undo()
    held = store(chunks=range(4, 9))
    held.apply([update(9, 2), update(10, 3)])  # two shards need a delta that no other shard needs
    before = applied(*range(4, 8))
    assert len(proofs(held, range(4), before, SALT, A)) == 4
    monkeypatch.setattr(shard_fingerprint, "_MOST_DELTAS", 2)
    assert len(proofs(held, range(4), before, SALT, A)) == 3
    assert all(proofs(held, range(4), before, SALT, A))
    monkeypatch.setattr(shard_fingerprint, "_MOST_DELTAS", 1)
    assert list(map(bool, proofs(held, range(4), before, SALT, A))) == [True, True, False, False]


def test_a_delta_is_unpacked_once_for_all_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    held, recalled = store(chunks=range(4, 12)), list[int]()
    recall = held.recall
    monkeypatch.setattr(
        held, "recall", lambda job, chunk, of: recalled.append(chunk) or recall(job, chunk, of)
    )
    held.apply([update(12, 2)])  # one shard is ahead of the others
    before = applied(*range(4, 9))
    found = proofs(held, range(4), before, SALT, A)
    prints = [
        fingerprint(total([LESSONS.part(chunk, n) for chunk in range(4, 9)]), SALT)
        for n in range(4)
    ]
    assert found == [proof_of(one, A) for one in prints]
    assert sorted(recalled) == [9, 10, 11, 12]


def test_a_shard_that_grows_while_proofs_are_made_is_proved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = store(chunks=[4, 5, 6, 7])
    content = held.content

    def grown(shard: int) -> Content:
        if 8 not in held.sets([1])[1].of(JOB):
            held.apply([update(8, *range(4))])
        return content(shard)

    monkeypatch.setattr(held, "content", grown)
    found = proofs(held, range(4), applied(4, 5, 6), SALT, A)
    prints = [
        fingerprint(total([LESSONS.part(chunk, n) for chunk in (4, 5, 6)]), SALT) for n in range(4)
    ]
    assert found == [proof_of(one, A) for one in prints]


def test_no_content_is_copied_for_a_proof_that_cannot_be_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else whoever asks for many such shards would keep a thread for as long as it likes."""
    held = store(chunks=[4, 5, 6, 7])
    held.release(JOB, [7])
    monkeypatch.setattr(held, "content", None)
    assert proofs(held, range(4), applied(4, 5, 6), SALT, A) == [b""] * 4


def test_a_delta_that_is_let_go_of_meanwhile_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    held = store(chunks=[4, 5])
    monkeypatch.setattr(held, "recall", lambda job, chunk, shards: [])
    assert shown(held, applied(4)) == b""
