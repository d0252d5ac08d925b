"""Questions at the pace of their answers."""

import pytest

from giaann_p2p.swarm.replication.bulk_calls import BulkCalls, size_of
from giaann_p2p.swarm.replication.flow import FIRST
from giaann_p2p.swarm.wire.actions import Action
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Fetched, Offer, Offered, Part, Piece, Refusal
from giaann_p2p.swarm.wire.pending import PendingCalls
from tests.helpers_swarm import JOB, NOW, A

SIZES: list[tuple[Message, int]] = [
    (Fetched([Piece(JOB, 1, b"shards", b"123"), Piece(JOB, 2, b"", b"45")], b"gone"), 5),
    (Offered(b"manifest", b"kept", b"a part"), 18),
    (Part(b"parcel"), 6),
    (Refusal("busy: no"), 0),
]


@pytest.mark.parametrize(("answer", "size"), SIZES, ids=lambda one: type(one).__name__)
def test_what_comes_of_shards_counts(answer: Message, size: int) -> None:
    assert size_of(answer) == size


@pytest.mark.parametrize("answer", [*(answer for answer, _ in SIZES), None])
def test_who_asked_is_told_and_the_pace_learns_of_it(answer: Message | None) -> None:
    calls = PendingCalls[Message | None, Action]()
    bulk, told = BulkCalls(4.0, calls), list[tuple[Message | None, float]]()

    def then(answer: Message | None, now: float) -> list[Action]:
        told.append((answer, now))
        return []

    call = bulk.call(A, Offer(3), 2 * FIRST, then, NOW)
    assert (call.peer, call.message, call.timeout) == (A, Offer(3), 8.0)
    assert not bulk.flow.fits(A, 1)
    assert calls.done(call.number, answer, NOW + 8) == []
    assert told == [(answer, NOW + 8)]
    assert bulk.flow.fits(A, FIRST)
    grown = size_of(answer) if answer is not None else -FIRST // 2
    assert bulk.flow.window(A) == FIRST + grown
    assert repr(bulk) == "<BulkCalls: <Flow: 0 bytes in flight from 1 peers>>"
