"""Editions: what the founder signs counts if it is newer, and nothing is taken back."""

from itertools import combinations

import msgspec
import pytest

from giaann_p2p.errors import EditionError
from giaann_p2p.model.spec import CHUNK, MOST_CHUNK
from giaann_p2p.store.layout import MOST_SHARDS, Layout
from giaann_p2p.swarm.wire.edition import (
    FORMAT,
    MOST_BYTES,
    MOST_SIZES,
    Edition,
    Editions,
    number_in,
    rules_of,
)
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.manifest import MOST_REPLICAS, Manifest, Rules

FOUNDER, STRANGER = (Identity.from_seed(bytes([n]) * 32) for n in (1, 2))
MANIFEST = Manifest.founded(FOUNDER, "town", layout=Layout(shards=16))
LARGE = Manifest.founded(FOUNDER, "port", layout=Layout(shards=16, sentences=1024))
OTHER = Manifest.founded(FOUNDER, "city", layout=Layout(shards=16))


def signed(
    number: int = 1,
    replicas: int = 4,
    sizes: tuple[int, ...] = (),
    by: Identity = FOUNDER,
    swarm: Manifest = MANIFEST,
    shards: int = 0,
) -> bytes:
    return Edition.signed(by, swarm.swarm_id, number, replicas, sizes, shards).to_bytes()


def framed(*fields: object) -> bytes:
    """Sign fields that are not even an edition."""
    body = msgspec.msgpack.encode([*fields, b""])
    return msgspec.msgpack.encode([*fields, FOUNDER.sign("edition", body)])


def test_edition_zero_is_the_manifest() -> None:
    editions = Editions(MANIFEST)
    assert editions.rules == Rules(16, 3, 2, 3, 2)
    assert (editions.number, editions.to_bytes()) == (0, b"")
    assert repr(editions) == "<Editions: 0, 3 replicas, 16 shards>"


def test_the_newest_edition_counts() -> None:
    editions = Editions(MANIFEST)
    assert editions.learn(signed(2, 5))
    assert editions.rules == Rules(16, 5, 3, 3, 2, 2)
    assert not editions.learn(signed(1, 4))
    assert not editions.learn(signed(2, 5))
    assert editions.to_bytes() == signed(2, 5)
    assert editions.learn(signed(7, 5))
    assert editions.number == 7


def test_a_second_edition_of_the_same_number_is_refused() -> None:
    """A founder whose folder was restored from an old copy might sign one."""
    editions = Editions(MANIFEST)
    assert editions.learn(signed(1, 4))
    with pytest.raises(EditionError, match="signed another edition 1 before this one"):
        editions.learn(signed(1, 5))
    assert not editions.learn(signed(1, 4))
    assert editions.rules.replicas == 4


def test_chunks_grow_and_their_earlier_sizes_are_kept() -> None:
    editions = Editions(MANIFEST)
    assert (editions.rules.chunk, editions.rules.sizes) == (CHUNK, (CHUNK,))
    for number, chunk in enumerate((128, 1024), 1):
        edition = editions.next(FOUNDER, chunk=chunk)
        assert (edition.number, edition.replicas) == (number, MANIFEST.replicas)
        assert editions.learn(edition.to_bytes())
    assert (editions.rules.chunk, editions.rules.sizes) == (1024, (CHUNK, 128, 1024))
    assert editions.learn(editions.next(FOUNDER, replicas=5).to_bytes())
    assert (editions.rules.chunk, editions.rules.replicas) == (1024, 5)
    for sizes in ((), (128,), (1024,), (128, 512), (128, 512, 1024)):
        with pytest.raises(EditionError, match="edition 4 lacks chunk sizes of edition 3"):
            editions.learn(signed(4, 5, sizes))
    assert editions.rules.edition == 3


def test_chunks_do_not_shrink_or_exceed_the_largest_or_grow_for_ever() -> None:
    editions = Editions(LARGE)
    for chunk in (64, 1024, MOST_CHUNK + 1):
        with pytest.raises(EditionError, match="can only grow: give 1025 to 16384, not"):
            editions.next(FOUNDER, chunk=chunk)
    with pytest.raises(EditionError, match="the chunk sizes of edition 1 do not ascend"):
        editions.learn(signed(swarm=LARGE, sizes=(512,)))
    for chunk in range(1025, 1025 + MOST_SIZES):
        editions.learn(editions.next(FOUNDER, chunk=chunk).to_bytes())
    with pytest.raises(EditionError, match="more often than 8 times"):
        editions.next(FOUNDER, chunk=2048)


def test_shards_double_and_the_layout_follows() -> None:
    editions = Editions(MANIFEST)
    assert (editions.rules.layout, editions.rules.first_shards) == (MANIFEST.layout, 16)
    for number, shards in enumerate((32, 128), 1):
        edition = editions.next(FOUNDER, shards=shards)
        assert (edition.format, edition.number, edition.replicas) == (2, number, 3)
        assert editions.learn(edition.to_bytes())
        assert editions.rules.layout == Layout(shards=shards, founded=16)
        assert (editions.rules.shards, editions.rules.first_shards) == (shards, 16)
    assert editions.learn(editions.next(FOUNDER, replicas=5).to_bytes())
    assert (editions.rules.shards, editions.rules.replicas) == (128, 5)


@pytest.mark.parametrize("shards", [0, 16, 64])
def test_no_edition_takes_shards_back(shards: int) -> None:
    editions = Editions(MANIFEST)
    assert editions.learn(signed(1, 4, shards=128))
    with pytest.raises(EditionError, match="edition 2 has fewer shards than the 128 of edition 1"):
        editions.learn(signed(2, 4, shards=shards))
    assert editions.rules.shards == 128


@pytest.mark.parametrize(
    ("shards", "says"),
    [
        (16, "can only be doubled, up to 65,536: it is 16, and cannot become 16"),
        (8, "it is 16, and cannot become 8"),
        (1 << 17, "it is 16, and cannot become 131,072"),
        (48, "it is 16, and cannot become 48"),
    ],
)
def test_the_founder_cannot_sign_other_numbers_of_shards(shards: int, says: str) -> None:
    with pytest.raises(EditionError, match=says):
        Editions(MANIFEST).next(FOUNDER, shards=shards)


def test_the_layout_keeps_its_blocks_and_its_chunks() -> None:
    layout = Layout(shards=16, blocks=4, sentences=1024)
    manifest = Manifest.founded(FOUNDER, "port", layout=layout)
    assert rules_of(manifest, None).layout == layout
    edition = Edition.signed(FOUNDER, manifest.swarm_id, 1, 3, (2048,), 32)
    assert rules_of(manifest, edition).layout == layout.with_shards(32)


def test_an_edition_without_shards_is_read_by_releases_that_know_none() -> None:
    fields = msgspec.msgpack.decode(signed(1, 4))
    assert (len(fields), fields[0]) == (6, 1)
    assert len(msgspec.msgpack.decode(signed(1, 4, shards=32))) == 7


def test_no_edition_takes_replicas_back() -> None:
    editions = Editions(MANIFEST)
    assert editions.learn(signed(1, 6))
    with pytest.raises(EditionError, match="edition 2 has 5 replicas, fewer than the 6 of edition"):
        editions.learn(signed(2, 5))
    assert editions.to_bytes() == signed(1, 6)
    with pytest.raises(EditionError, match="has 2 replicas, fewer than the 3 of the manifest"):
        Editions(MANIFEST).learn(signed(1, 2))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "this is not an edition"),
        (b"\xff" * 40, "this is not an edition"),
        (b"\x91" * 400, "this is not an edition"),
        (bytes(MOST_BYTES + 1), "at most 65536 bytes, not 65,537"),
        (signed(by=STRANGER), "the founder did not sign"),
        (signed(swarm=OTHER), "another swarm's"),
        (signed()[:-1] + b"?", "the founder did not sign"),
        (signed() + b"?", "this is not an edition"),
        (framed(FORMAT + 1, MANIFEST.swarm_id, 1, 4), "has format 4, .* giaann-p2p reads 1 to 3"),
        (framed(FORMAT + 1, "all else is different"), "has format 4, .* giaann-p2p reads 1 to 3"),
        (framed(1, MANIFEST.swarm_id, 0, 4, []), "this is not an edition"),
        (framed(1, MANIFEST.swarm_id, 1 << 32, 4, []), "this is not an edition"),
        (framed(1, MANIFEST.swarm_id, 1, MOST_REPLICAS + 1, []), "this is not an edition"),
        (framed(1, MANIFEST.swarm_id, 1, 4, [], 5), "this is not an edition"),
        (framed(1, MANIFEST.swarm_id, 1, 4), "this is not an edition"),
        (framed(1, MANIFEST.swarm_id, 1, 4, [CHUNK]), "this is not an edition"),
        (framed(1, MANIFEST.swarm_id, 1, 4, [MOST_CHUNK + 1]), "this is not an edition"),
        (framed(1, MANIFEST.swarm_id, 1, 4, [*range(65, 74)]), "this is not an edition"),
        (signed(shards=16)[:-1] + b"\x00", "format 2, where 1 states the same"),
        (signed() + b"\x20", "this is not an edition"),
        (signed(shards=24), "has 24 shards, which is not a doubling of the 16 of the manifest"),
        (signed(shards=8), "has 8 shards, which is not a doubling of the 16 of the manifest"),
        (signed(shards=1)[:-1] + b"\x20", "the founder did not sign"),
        (signed(sizes=(128, 128)), "the chunk sizes of edition 1 do not ascend"),
        (signed(sizes=(256, 128)), "the chunk sizes of edition 1 do not ascend"),
        (signed().replace(b"\x04\x90", b"\xcc\x04\x90"), "not in its canonical encoding"),
    ],
)
def test_what_is_no_edition_of_the_founder_changes_nothing(data: bytes, says: str) -> None:
    editions = Editions(MANIFEST)
    with pytest.raises(EditionError, match=says):
        editions.learn(data)
    assert editions.rules == rules_of(MANIFEST, None)


def test_the_number_in_an_edition_is_read_without_its_manifest() -> None:
    found = (signed(7), signed(8, shards=32), signed()[:-1], b"")
    assert [number_in(data) for data in found] == [7, 8, 0, 0]


def test_the_signature_covers_all_that_an_edition_says() -> None:
    known = msgspec.msgpack.decode(signed())
    doubled = msgspec.msgpack.decode(signed(shards=32))
    changes = (known, 1, OTHER.swarm_id), (known, 2, 2), (known, 3, 5), (known, 4, [128])
    for before, at, other in (*changes, (doubled, 6, 64)):
        fields = [*before]
        fields[at] = other
        with pytest.raises(EditionError):
            Editions(MANIFEST).learn(msgspec.msgpack.encode(fields))


def test_an_edition_is_small() -> None:
    sizes = tuple(range(MOST_CHUNK - MOST_SIZES, MOST_CHUNK))
    assert len(signed((1 << 32) - 1, MOST_REPLICAS, sizes, shards=MOST_SHARDS)) <= 155


@pytest.mark.parametrize(
    ("founded", "wanted", "replicas", "quorum"),
    [
        (1, 0, 3, 2),
        (2, 0, 3, 2),
        (3, 0, 4, 3),
        (3, 0, 5, 3),
        (3, 3, 4, 3),
        (3, 3, 7, 4),
        (4, 0, 64, 33),
        (3, 1, 9, 1),  # the founder wanted quorums that need not meet
        (4, 2, 9, 2),
    ],
)
def test_the_quorum_grows_where_quorums_of_the_manifest_meet(
    founded: int, wanted: int, replicas: int, quorum: int
) -> None:
    manifest = Manifest.founded(FOUNDER, "town", replicas=founded, quorum=wanted)
    edition = Edition.signed(FOUNDER, manifest.swarm_id, 1, replicas)
    rules = rules_of(manifest, edition)
    assert (rules.replicas, rules.quorum, rules.founded) == (replicas, quorum, founded)


def test_where_quorums_need_not_meet_as_few_owners_begin_as_at_first() -> None:
    manifest = Manifest.founded(FOUNDER, "town", replicas=3, quorum=1)
    assert rules_of(manifest, None).begin == 1
    assert rules_of(manifest, Edition.signed(FOUNDER, manifest.swarm_id, 1, 9)).begin == 1
    assert (Rules(16).begin, Rules(16, 3, 3).begin, Rules(16, 4, 3).begin) == (2, 3, 3)


@pytest.mark.parametrize("founded", range(1, 6))
@pytest.mark.parametrize("more", range(4))
def test_owners_that_may_begin_have_what_any_earlier_edition_committed(
    founded: int, more: int
) -> None:
    manifest = Manifest.founded(FOUNDER, "town", replicas=founded)
    editions = [
        None,
        *(Edition.signed(FOUNDER, manifest.swarm_id, n, founded + n) for n in range(1, more + 1)),
    ]
    now = rules_of(manifest, editions[-1])
    for edition in editions:
        then = rules_of(manifest, edition)
        for having in combinations(range(then.replicas), then.quorum):
            for there in combinations(range(now.replicas), now.begin):
                assert {*having} & {*there}


def test_the_next_edition_has_more_replicas_and_the_next_number() -> None:
    editions = Editions(MANIFEST)
    first = editions.next(FOUNDER, 4)
    assert (first.number, first.replicas) == (1, 4)
    assert editions.learn(first.to_bytes())
    assert editions.next(FOUNDER, 9).number == 2
    for replicas in (3, 4, MOST_REPLICAS + 1):
        with pytest.raises(EditionError, match=f"give 5 to 64, not {replicas}"):
            editions.next(FOUNDER, replicas)
