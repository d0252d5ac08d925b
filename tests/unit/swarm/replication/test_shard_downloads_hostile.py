"""Lies about whole shards on their way: told apart, and of no use to who tells them."""

from dataclasses import replace

import msgspec
import pytest

from giaann_p2p.errors import MessageError
from giaann_p2p.model.delta import Delta
from giaann_p2p.store import transfer
from giaann_p2p.store.codec.parcel import encode, sizes_of
from giaann_p2p.store.content import Content
from giaann_p2p.store.transfer import Export, Manifest
from giaann_p2p.swarm.wire.actions import Adopt
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import AskPart, Fetched, Offer, Offered, Part, Piece, Refusal
from giaann_p2p.swarm.wire.shardset import packed
from tests.helpers_swarm import JOB, LESSONS, MESSAGES, SHARDS, B, C, applied, shards, store
from tests.unit.swarm.replication.helpers_shard_downloads import (
    MOST,
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


@pytest.mark.parametrize(
    "answer",
    [
        None,
        Part(b""),
        Fetched([piece(3, 1)], applied().to_bytes()),
        Fetched([piece(4, 1, 2)], applied().to_bytes()),
        Fetched([Piece(JOB, 4, packed(shards(1), SHARDS), b"none")], applied().to_bytes()),
        Fetched([], b"none"),
    ],
    ids=["none", "another kind", "another chunk", "another shard", "no parcel", "no set"],
)
def test_a_lie_about_deltas(answer: Message | None) -> None:
    one = Arriving()
    one.want(1)
    one.answer(answer_to(Offer(1), export_of(1, 4)))
    one.answer(answer)
    assert (one.actions, one.around.suspected, len(one.downloads)) == ([], [B], 0)


def huge() -> Delta:
    """Return rows of which two parts add up to more than can be."""
    strength = LESSONS.delta(1).strength.copy()
    strength[0] = 1 << 62
    return replace(LESSONS.delta(1), strength=strength)


GOOD = Export(taught(1, 2, 3).content(1))
EMPTY = Export(taught().content(1))
LIES: dict[str, Message | None] = {
    "none in time": None,
    "of another kind": Part(b""),
    "no manifest": Offered(b"none", applied().to_bytes(), b""),
    "of another shard": offered(export_of(2, 1, 2, 3).manifest),
    "of a shard that is not": offered(GOOD.manifest, shard=1 << 20),
    "of a shard below none": offered(GOOD.manifest, shard=-1),
    "too many parts": offered(GOOD.manifest, parts=[b""] * 10_000),
    "too many connections": offered(GOOD.manifest, connections=1 << 31),
    "chunks that are none": offered(GOOD.manifest, applied=b"none"),
    "no set of what is kept": Offered(GOOD.manifest.to_bytes(), b"none", b""),
    "another part with it": Offered(
        GOOD.manifest.to_bytes(), applied().to_bytes(), export_of(1, 7).part(0)
    ),
    "a part of a shard without any": Offered(
        EMPTY.manifest.to_bytes(), applied().to_bytes(), GOOD.part(0)
    ),
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_about_what_there_is(name: str) -> None:
    one = Arriving()
    one.want(1)
    one.answer(LIES[name])
    assert (one.actions, one.around.suspected, one.around.trusted) == ([], [B], [])
    assert len(one.downloads) == len(one.calls) == 0
    one.want(1)  # the same lie again
    one.answer(LIES[name])
    assert (one.actions, len(one.downloads)) == ([], 0)
    one.want(1, peer=C)
    one.serve(GOOD)
    assert one.adopted.content().digest == taught(1, 2, 3).content(1).digest


@pytest.mark.parametrize(
    "manifest",
    [
        msgspec.structs.replace(GOOD.manifest, parts=[]),
        msgspec.structs.replace(export_of(1, 1).manifest, parts=[], digest=b""),
    ],
    ids=["no parts that come to something", "no parts and no digest"],
)
def test_an_offer_that_is_seen_to_be_none_when_it_is_unpacked(manifest: Manifest) -> None:
    one = Arriving()
    one.want(1)
    one.answer(Offered(manifest.to_bytes(), applied().to_bytes(), b""))
    assert isinstance(one.take_in(), MessageError)
    assert (one.actions, one.around.suspected, one.again) == ([], [B], [])
    assert len(one.downloads) == len(one.calls) == len(one.deeds) == 0
    assert one.downloads._rests == {}  # the shard is not to blame


PARTS: dict[str, Message | None] = {
    "none in time": None,
    "of another kind": offered(GOOD.manifest),
    "nothing": Part(b""),
    "another part": Part(export_of(1, 7).part(0)),
    "half of it": Part(GOOD.part(0)[:-1]),
    "more than it": Part(GOOD.part(0) + b"\0"),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_lie_about_a_part(name: str) -> None:
    one = Arriving()
    one.want(1)
    one.answer(answer_to(Offer(1), GOOD))
    one.answer(answer_to(one.asked[0], GOOD))
    one.answer(PARTS[name])
    assert (one.actions, one.around.suspected, len(one.downloads)) == ([], [B], 0)
    one.want(1, peer=C)
    one.serve(GOOD)
    assert one.adopted.content().digest == taught(1, 2, 3).content(1).digest


def liar(*parcels: bytes, digest: bytes = bytes(32)) -> Export:
    """Return an export of parts that somebody made up, and gave their right digests."""
    export = export_of(1, *range(20))
    export._parts = list(parcels)
    export.manifest = msgspec.structs.replace(
        export.manifest, parts=[transfer._digest(parcel) for parcel in parcels], digest=digest
    )
    return export


def test_a_shard_that_fits_into_no_memory_is_not_asked_for() -> None:
    for connections, questions in ((MOST, 1), (MOST + 1, 0)):
        one = Arriving()
        one.want(1)
        one.answer(offered(GOOD.manifest, connections=connections))
        assert (len(one.asked), one.around.suspected) == (questions, [])
        assert len(one.downloads) == questions
        one.want(1)
        assert len(one.asked) == questions, "asked for again at once"


def test_no_more_comes_than_was_promised() -> None:
    one, export = Arriving(), export_of(1, *range(20))
    sizes = [sizes_of(part).connections for part in export._parts]
    export.manifest = msgspec.structs.replace(export.manifest, connections=sum(sizes) - 1)
    one.want(1)
    came = 0
    while one.actions:
        came += isinstance(one.asked[0], AskPart)
        one.answer(answer_to(one.asked[0], export))
    assert came == len(sizes)
    assert len(one.downloads) == 0
    assert one.around.suspected == [B]


@pytest.mark.parametrize(
    "export",
    [
        liar(GOOD.part(0)),
        liar(GOOD.part(0), GOOD.part(0)),
        liar(b"no parcel"),
        liar(encode(huge()), encode(huge())),
    ],
    ids=["another sum", "a part twice", "no parcel", "more than can be"],
)
def test_parts_that_come_to_nothing_are_not_kept(export: Export) -> None:
    one = Arriving()
    for suspicions in (1, 2):
        one.want(1)
        while one.actions:
            if isinstance(one.actions[0], Adopt):
                assert isinstance(one.take_in(), MessageError)
            else:
                one.answer(answer_to(one.asked[0], export))
        assert one.around.suspected == [B] * suspicions
        assert all(half.parts and half.parts.missing for half in one.downloads._kept.values())
        assert len(one.downloads) == len(one.calls) == len(one.deeds) == 0
    one.want(1, peer=C)
    one.serve(GOOD)
    assert one.adopted.content().digest == taught(1, 2, 3).content(1).digest


def test_any_kind_of_message_but_one_is_suspicious() -> None:
    for message in [message for message in MESSAGES if not isinstance(message, Refusal)]:
        one = Arriving()
        one.want(1)
        one.answer(message)
        one.want(1)
        one.answer(answer_to(Offer(1), GOOD))
        one.answer(answer_to(one.asked[0], GOOD))
        one.answer(message)
        assert (one.actions, one.around.suspected) == ([], [B, B])


def test_rows_of_other_shards_are_refused_by_the_store() -> None:
    one = Arriving()
    foreign = Content(shards(1), [applied(9)], LESSONS.delta(9))
    one.want(1)
    one.serve(Export(foreign))
    with pytest.raises(Exception, match="rows of other shards"):
        store([1]).adopt(one.adopted.content())
