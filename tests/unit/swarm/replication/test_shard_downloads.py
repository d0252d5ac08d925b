"""Whole shards on their way: asked for, cut off, tried again, taken in."""

import pytest

from giaann_p2p.errors import DiskError, GiaannError, StoreFull, UsageError
from giaann_p2p.model.delta import EMPTY as EMPTY_DELTA
from giaann_p2p.store import transfer
from giaann_p2p.store.content import Content
from giaann_p2p.store.transfer import Export
from giaann_p2p.swarm.replication import shard_downloads
from giaann_p2p.swarm.replication.answers import Answers
from giaann_p2p.swarm.replication.flow import FIRST
from giaann_p2p.swarm.replication.replicas import Replicas
from giaann_p2p.swarm.replication.settings import Settings
from giaann_p2p.swarm.replication.shard_downloads import at_once, part_of
from giaann_p2p.swarm.wire.actions import Adopt, Apply, Call
from giaann_p2p.swarm.wire.messages import (
    BUSY,
    AskPart,
    Fetch,
    Fetched,
    Offer,
    Offered,
    Part,
    Refusal,
)
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.shardset import packed
from tests.helpers_swarm import JOB, NOW, SHARDS, A, B, C, applied, shards, store, update
from tests.unit.swarm.replication.helpers_shard_downloads import (
    Arriving,
    answer_to,
    export_of,
    offered,
    piece,
    taught,
)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "PART", 100)


def test_a_shard_comes_part_by_part_and_is_taken_in() -> None:
    one, export = Arriving(), export_of(1, *range(20))
    parts = len(export.manifest.parts)
    assert parts > 2
    one.want(1)
    assert one.asked == [Offer(1)]
    assert one.serve(export) == 2 + parts
    mine = store([1])
    mine.adopt(one.adopted.content())
    assert mine.content(1).digest == taught(*range(20)).content(1).digest
    assert len(one.downloads) == 1
    assert one.again == []
    assert one.deeds.done(one.adopted.number, None, NOW + 3) == []
    assert one.again == [(B, NOW + 3)]  # to hear of what came there meanwhile
    assert len(one.downloads) == len(one.calls) == len(one.deeds) == 0
    assert set(one.around.trusted) == {B}


def test_a_shard_without_any_rows_comes_at_once() -> None:
    one, nothing = Arriving(), Content(shards(2), [applied(7)], EMPTY_DELTA)
    one.want(2)
    assert one.serve(Export(nothing)) == 2
    assert one.adopted.content().applied == [applied(7)]


def test_nothing_comes_of_which_all_is_here() -> None:
    one = Arriving()
    one.store.apply([update(chunk, 1) for chunk in range(3)])
    one.want(1)
    one.answer(answer_to(Offer(1), export_of(1, 0, 2)))
    assert (one.actions, len(one.downloads), one.around.suspected) == ([], 0, [])
    one.want(1)
    one.answer(answer_to(Offer(1), export_of(1, 0, 2, 3)))
    assert one.asked == [Fetch(packed(shards(1), SHARDS), applied(3).to_bytes())]


def test_deltas_that_are_kept_there_come_before_the_shard() -> None:
    """Else a chunk that came there a moment ago would have no delta here."""
    one, sender = Arriving(), taught(*range(20))
    sender.release(JOB, range(18))
    answers = Answers(sender, lambda shard: ReplicaState.READY)
    one.want(1)
    one.answer(answers.to(one.asked[0]))
    assert one.asked == [Fetch(packed(shards(1), SHARDS), applied(18, 19).to_bytes())]
    one.answer(answers.to(one.asked[0]))
    (deed,) = one.actions
    assert isinstance(deed, Apply)
    one.store.apply(deed.unpacked())
    one.actions = one.deeds.done(deed.number, None, NOW)
    while isinstance(one.actions[0], Call):
        assert isinstance(one.asked[0], AskPart)
        one.answer(answers.to(one.asked[0]))
    assert one.take_in() is None
    assert one.store.content(1).digest == sender.content(1).digest
    assert one.store.retained_for(1) == applied(18, 19)


def test_deltas_are_asked_for_until_none_comes() -> None:
    one, sender = Arriving(), taught(*range(6))
    answers = Answers(sender, lambda shard: ReplicaState.READY)
    one.want(1)
    one.answer(answers.to(Offer(1)))
    one.answer(Fetched([piece(chunk, 1) for chunk in (1, 2)], applied().to_bytes()))
    (deed,) = one.actions
    assert isinstance(deed, Apply)
    one.store.apply(deed.unpacked())
    one.actions = one.deeds.done(deed.number, None, NOW)
    assert one.asked == [Fetch(packed(shards(1), SHARDS), applied(0, 3, 4, 5).to_bytes())]
    one.answer(Fetched([], applied(0, 3, 4, 5).to_bytes()))  # they were released meanwhile
    while isinstance(one.actions[0], Call):
        one.answer(answers.to(one.asked[0]))
    assert one.take_in() is None
    assert one.store.content(1).digest == sender.content(1).digest


def test_what_is_kept_nowhere_comes_with_the_offer() -> None:
    """So that most shards take one question."""
    one, sender = Arriving(), taught(*range(2))
    sender.release(JOB, range(2))
    answers = Answers(sender, lambda shard: ReplicaState.READY)
    one.want(1, 2)
    for shard in (1, 2):
        one.answer(answers.to(Offer(shard)))
    for shard in (1, 2):
        deed = one.actions.pop(0)
        assert isinstance(deed, Adopt)
        assert deed.content().digest == sender.content(shard).digest
        one.deeds.done(deed.number, None, NOW)
    assert len(one.downloads) == 0


def test_a_part_that_comes_with_an_offer_counts_as_bytes() -> None:
    one, export = Arriving(bandwidth=1.0), export_of(1, *range(20))
    one.want(1)
    part = export.part(0)
    one.answer(Offered(export.manifest.to_bytes(), applied().to_bytes(), part))
    assert one.actions == []
    assert one.downloads.due(NOW + len(part) - 1.0) == []
    assert one.downloads.due(NOW + len(part) + 0.1) != []


@pytest.mark.parametrize(
    ("connections", "transfers", "wanted"),
    [
        (None, 32, 4),
        (None, 3, 3),
        (0, 32, 32),
        (1, 32, 32),
        (1 << 14, 32, 32),
        (1 << 15, 32, 16),
        (1 << 18, 32, 2),
        (1 << 30, 32, 2),
        (1 << 30, 1, 1),
    ],
)
def test_many_small_shards_arrive_at_once_or_few_large_ones(
    connections: int | None, transfers: int, wanted: int
) -> None:
    assert at_once(Settings(transfers=transfers), connections) == wanted


def test_as_many_are_asked_for_as_the_last_one_lets_expect() -> None:
    export = export_of(0, *range(20))
    size = export.manifest.connections
    one = Arriving(transfers=4, under_way=3 * size)
    one.downloads._size = 3 * size  # the last one was larger
    one.want(*range(SHARDS))
    assert one.asked == [Offer(0), Offer(1)]
    one.answer(answer_to(Offer(0), export))
    assert [question for question in one.asked if isinstance(question, Offer)] == [
        Offer(1),
        Offer(2),
    ]


def test_no_more_is_asked_of_a_peer_than_comes_soon() -> None:
    """Of shards that have as many bytes as the last one; others are asked of others."""
    one = Arriving()
    one.downloads._size, one.downloads._part = 1, FIRST // 2
    other = one.bulk.flow.ask(B, FIRST // 2, NOW)
    one.want(1, 2, 3)
    assert one.asked == [Offer(1)]
    one.want(2, peer=C)
    assert one.asked == [Offer(1), Offer(2)]
    one.bulk.flow.came(other, 0, NOW)
    one.want(3)
    assert one.asked == [Offer(1), Offer(2), Offer(3)]


@pytest.mark.parametrize(
    ("last", "most"), [(None, FIRST // 2), (5000, FIRST // 4), (20_000, 40_000)]
)
def test_an_offer_brings_a_part_of_the_usual_length(last: int | None, most: int) -> None:
    one = Arriving()
    one.downloads._part = last
    one.want(1)
    (call,) = one.actions
    assert isinstance(call, Call)
    assert call.message == Offer(1, most)


def test_what_came_of_the_last_shard_tells_how_long_the_next_is() -> None:
    one, export = Arriving(), export_of(0, *range(20))
    one.want(0)
    one.answer(Offered(export.manifest.to_bytes(), applied().to_bytes(), export.part(0)))
    assert one.downloads._part == len(export.part(0))
    two = Arriving()
    two.want(0)
    two.answer(offered(export.manifest))
    assert two.downloads._part == part_of(export.manifest)
    assert 0.5 < part_of(export.manifest) / len(export.part(0)) < 2


def test_parts_are_asked_for_as_they_fit_and_waited_for_as_long_as_they_are() -> None:
    export = export_of(1, *range(20))
    size, parts = part_of(export.manifest), len(export.manifest.parts)
    for window, fit, wait in ((FIRST, 4, 4.0), (2 * size, 2, 4.0), (size // 2, 1, 8.0)):
        one = Arriving()
        one.want(1)
        one.answer(offered(export.manifest))
        one.bulk.flow._line(B).window = window
        one.answer(Fetched([], applied(*range(100)).to_bytes()))
        assert one.asked == [
            AskPart(1, export.manifest.digest, number) for number in range(min(fit, parts))
        ]
        for action in one.actions:
            assert isinstance(action, Call)
            assert action.timeout == pytest.approx(wait, rel=0.1)


def test_what_is_not_taken_in_yet_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    one, exports = Arriving(), [export_of(shard, *range(20)) for shard in range(3)]
    most = len(exports[0].part(0)) + len(exports[1].part(0))
    monkeypatch.setattr(shard_downloads, "_MOST_BYTES", most)
    one.want(*range(3))
    for export in exports[:2]:
        one.answer(Offered(export.manifest.to_bytes(), applied().to_bytes(), export.part(0)))
    one.actions.clear()
    one.downloads._arriving[0].asked.clear()
    one.downloads._arriving[1].asked.clear()
    asked = [action.message for action in one.downloads.due(NOW) if isinstance(action, Call)]
    assert asked
    assert {question.shard for question in asked if isinstance(question, AskPart)} == {0}


def test_nobody_is_asked_who_does_not_answer() -> None:
    one = Arriving(transfers=1)
    one.want(0)
    one.want(1)
    one.want(2, peer=C)
    one.around.unreachable = {B}
    one.answer(None)
    assert one.actions == []
    assert [type(action) for action in one.downloads.due(NOW)] == [Call]
    assert [arrival.peer for arrival in one.downloads._arriving.values()] == [C]


def test_a_delta_for_no_shard_is_none() -> None:
    one = Arriving()
    one.want(1)
    one.answer(answer_to(Offer(1), export_of(1, 4)))
    one.answer(Fetched([piece(4)], applied().to_bytes()))
    assert not isinstance(one.actions[0], Apply)


def test_a_shard_of_which_all_chunks_came_as_deltas_does_not_come_whole() -> None:
    one = Arriving()
    one.want(1)
    one.answer(answer_to(Offer(1), export_of(1, 4)))
    one.answer(Fetched([piece(4, 1)], applied().to_bytes()))
    (deed,) = one.actions
    assert isinstance(deed, Apply)
    one.store.apply(deed.unpacked())
    assert one.deeds.done(deed.number, None, NOW) == []
    assert len(one.downloads) == len(one.calls) == len(one.deeds) == 0


def test_deltas_that_come_with_a_shard_count_as_bytes() -> None:
    one = Arriving(bandwidth=1.0)
    one.want(1)
    one.answer(answer_to(Offer(1), export_of(1, 4, 5)))
    one.answer(Fetched([piece(4, 1)], applied().to_bytes()))
    (deed,) = one.actions
    assert isinstance(deed, Apply)
    one.store.apply(deed.unpacked())
    assert one.deeds.done(deed.number, None, NOW) == []
    assert one.downloads.due(NOW + len(piece(4, 1).parcel) - 1.0) == []
    assert len(one.downloads.due(NOW + len(piece(4, 1).parcel))) == 1


def test_a_shard_is_wanted_once_and_only_some_at_a_time() -> None:
    one = Arriving(transfers=2)
    one.want(0, 0, 1, 2)
    one.want(0, peer=C)
    assert one.asked == [Offer(0), Offer(1)]
    one.answer(None)
    one.want(2, peer=C)
    assert one.asked == [Offer(1), Offer(2)]


@pytest.mark.parametrize("error", [StoreFull("the store is full"), DiskError("no space left")])
def test_what_there_is_no_room_for_is_kept_and_tried_again(error: GiaannError) -> None:
    one, export = Arriving(), export_of(1, 5)
    one.want(1)
    one.serve(export)
    before = one.adopted
    assert one.deeds.done(before.number, error, NOW) == []
    assert (len(one.downloads), one.again, one.around.suspected) == (1, [], [])
    one.actions.clear()
    one.want(2)
    assert one.actions == []  # nothing more as long as there is no room
    again, more = one.downloads.due(NOW + 1)
    assert isinstance(again, Adopt)
    assert again.arrived is before.arrived
    assert isinstance(more, Call)
    assert one.deeds.done(again.number, None, NOW + 2) == []
    assert (len(one.downloads), one.again) == (1, [(B, NOW + 2)])


def test_room_again_ends_the_wait_for_good() -> None:
    one, export = Arriving(), export_of(1, 5)
    for now, error in ((NOW, StoreFull("full")), (NOW + 1, None), (NOW + 2, StoreFull("full"))):
        if now != NOW + 1:
            one.want(1, now=now)
            one.serve(export, now)
        one.deeds.done(one.adopted.number, error, now)
        one.actions = one.downloads.due(now + 1)
    assert one.adopted.content().shards.tolist() == [1]  # after a second, not after two


def test_what_there_is_never_room_for_is_not_sent_again_at_once() -> None:
    one, export, now, tries = Arriving(), export_of(1, 5), NOW, 0
    one.want(1)
    one.serve(export)
    while one.actions:
        assert one.deeds.done(one.adopted.number, StoreFull("full"), now) == []
        tries, now = tries + 1, now + 20
        one.actions = one.downloads.due(now)
    assert (tries, len(one.downloads), one.around.suspected) == (5, 0, [])
    last = now - 20
    one.want(1, now=last + 59)
    assert one.actions == []
    one.want(1, peer=C, now=last + 59)
    assert one.asked == [Offer(1)]
    one.answer(None, last + 59)
    one.want(1, now=last + 60)
    assert one.asked == [Offer(1)]


def test_what_the_store_turns_down_is_not_sent_again_at_once() -> None:
    one = Arriving()
    one.want(1)
    one.serve(export_of(1, 5))
    assert one.deeds.done(one.adopted.number, UsageError("each has others"), NOW) == []
    assert (len(one.downloads), one.again, one.around.suspected) == (0, [], [])
    one.actions.clear()
    one.want(1, 2)
    assert one.asked == [Offer(2)]
    one.want(1, now=NOW + 60)
    assert one.asked == [Offer(2), Offer(1)]


def test_deltas_that_there_is_no_room_for_are_asked_for_later() -> None:
    one = Arriving()
    one.want(1)
    one.answer(answer_to(Offer(1), export_of(1, 4, 5)))
    one.answer(Fetched([piece(4, 1)], applied().to_bytes()))
    (deed,) = one.actions
    assert isinstance(deed, Apply)
    assert one.deeds.done(deed.number, StoreFull("full"), NOW) == []
    assert one.downloads.due(NOW + 0.9) == []
    (call,) = one.downloads.due(NOW + 1)
    assert isinstance(call, Call)
    assert isinstance(call.message, Fetch)


def test_parts_wait_for_bandwidth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "PART", 20)
    one, export = Arriving(bandwidth=1.0), export_of(1, *range(20))
    one.want(1)
    one.answer(answer_to(Offer(1), export))
    one.answer(answer_to(one.asked[0], export))
    parts = [export.part(number) for number in range(4)]
    digest = export.manifest.digest
    assert one.asked == [AskPart(1, digest, number) for number in range(4)]
    for part in parts:
        one.answer(Part(part))
    assert one.actions == []  # that was more than a second's worth
    size = sum(map(len, parts))
    assert one.downloads.due(NOW + size - 1.0) == []
    call = one.downloads.due(NOW + size + 0.1)[0]
    assert isinstance(call, Call)
    assert call.message == AskPart(1, digest, 4)


def test_what_came_before_a_sender_failed_is_kept_for_the_next() -> None:
    one, export = Arriving(), export_of(1, *range(20))
    one.want(1)
    for _ in range(4):
        one.answer(answer_to(one.asked[0], export))
    while one.actions:
        one.answer(None)
    assert (one.around.suspected, len(one.downloads)) == ([B], 0)
    one.want(1, peer=C)
    assert one.serve(export) == 2 + len(export.manifest.parts) - 2
    assert one.adopted.content().digest == taught(*range(20)).content(1).digest


@pytest.mark.parametrize("answers", [0, 1, 2, 3])
def test_a_refusal_is_no_silence_and_what_came_before_is_kept(answers: int) -> None:
    one, export = Arriving(), export_of(1, *range(20))
    one.want(1)
    for _ in range(answers):
        one.answer(answer_to(one.asked[0], export))
    one.answer(Refusal("not offered any longer"))
    assert len(one.downloads) == 0
    while one.actions:
        one.answer(None)  # what else was asked for does not matter any more
    assert (one.around.suspected, one.around.trusted[-1]) == ([], B)
    one.want(1, peer=C)
    assert one.serve(export) == 2 + len(export.manifest.parts) - max(0, answers - 2)


def test_what_came_of_something_else_is_not_used() -> None:
    one, export, newer = Arriving(), export_of(1, *range(20)), export_of(1, *range(21))
    one.want(1)
    one.answer(answer_to(Offer(1), export))
    one.answer(None)
    one.want(1)
    assert one.serve(newer) == 2 + len(newer.manifest.parts)
    assert one.adopted.content().digest == taught(*range(21)).content(1).digest


def test_halves_are_kept_of_few_shards_and_of_none_that_went(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shard_downloads, "_MOST_KEPT", 2)
    one = Arriving()
    for shard in range(3):
        one.want(shard)
        one.answer(answer_to(Offer(shard), export_of(shard, *range(20))))
        one.answer(None)
    assert list(one.downloads._kept) == [1, 2]
    one.replicas.covered(2, NOW)
    one.downloads.due(NOW)
    assert list(one.downloads._kept) == [1]


@pytest.mark.parametrize("parts", [0, 2])
def test_a_shard_that_went_meanwhile_is_asked_for_no_further(parts: int) -> None:
    one, export = Arriving(), export_of(1, *range(20))
    one.want(1)
    for _ in range(parts):
        one.answer(answer_to(one.asked[0], export))
    one.replicas.covered(1, NOW)
    one.answer(answer_to(Offer(1), export) if parts == 0 else Part(export.part(0)))
    assert not [action for action in one.actions if not isinstance(action, Call)]
    while one.actions:
        one.answer(None)
    assert (len(one.downloads), one.around.suspected) == (0, [])


def test_a_late_answer_does_not_disturb_the_next_try() -> None:
    one, export = Arriving(), export_of(1, *range(20))
    one.want(1)
    late = one.actions.pop()
    assert isinstance(late, Call)
    one.replicas.covered(1, NOW)
    assert one.downloads.due(NOW) == []
    one.replicas = one.downloads._replicas = Replicas(A, SHARDS, range(SHARDS))
    one.want(1, peer=C)
    assert one.calls.done(late.number, None, NOW) == []
    assert len(one.downloads) == 1
    one.serve(export)
    assert one.adopted.content().shards.tolist() == [1]


def test_what_a_busy_peer_turned_away_comes_as_soon_as_something_else_has() -> None:
    """Not only with the next comparison: a second for each helping."""
    one = Arriving(transfers=4)
    one.want(0, 1, 2, 3)
    one.answer(Refusal(f"{BUSY}: too many questions"))
    one.answer(Refusal(f"{BUSY}: too many questions"))
    assert one.asked == [Offer(2), Offer(3)]
    one.answer(answer_to(Offer(2), export_of(2, 7)))
    one.answer(Refusal(f"{BUSY}: too many questions"))  # only one was taken on
    one.serve(export_of(2, 7))
    assert one.take_in() is None
    assert one.asked == []
    one.actions += one.downloads.due(NOW)
    assert one.asked == [Offer(0), Offer(1)]  # that one, and one more
    assert one.around.suspected == []


def test_a_peer_that_is_always_busy_is_asked_for_one_shard_after_a_pause_and_holds_up_nobody() -> (
    None
):
    one = Arriving(transfers=4)
    one.want(0, 1)
    one.answer(Refusal(BUSY))
    one.answer(Refusal(BUSY))
    assert one.downloads.due(NOW + 0.5) == []
    one.want(2, peer=C)
    assert one.asked == [Offer(2)]
    one.actions += one.downloads.due(NOW + 1)
    assert one.asked == [Offer(2), Offer(0)]


def test_a_shard_that_is_refused_for_good_is_not_asked_for_by_itself() -> None:
    one = Arriving()
    one.want(0)
    one.answer(Refusal("it is not here"))
    assert one.downloads.due(NOW + 60) == []
