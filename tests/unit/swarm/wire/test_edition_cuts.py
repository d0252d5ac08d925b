"""Editions that cut columns: with new sizes of chunks, into more parts, and for good."""

from collections.abc import Sequence

import msgspec
import pytest

from giaann_p2p.errors import EditionError
from giaann_p2p.store.cuts import MOST_PARTS, Cut
from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.wire.edition import Edition, Editions, rules_of
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.manifest import Manifest

FOUNDER = Identity.from_seed(bytes(32))
PLAIN = Manifest.founded(FOUNDER, "town", layout=Layout(shards=16))
CUT = Manifest.founded(
    FOUNDER, "port", layout=Layout(shards=16, cuts=(Cut("day", 4), Cut("man", 2)))
)
Lists = tuple[Sequence[Cut], ...]


def signed(lists: Lists, sizes: tuple[int, ...] = (128, 256), number: int = 1) -> bytes:
    cuts = tuple(map(tuple, lists))
    return Edition.signed(FOUNDER, CUT.swarm_id, number, 3, sizes, cuts=cuts).to_bytes()


def test_each_size_of_chunks_has_its_cuts() -> None:
    editions = Editions(CUT)
    assert editions.learn(signed(([Cut("day", 8), Cut("sea", 2)],)))
    rules, first = editions.rules, CUT.layout.cuts
    grown = (Cut("day", 8), Cut("man", 2), Cut("sea", 2))
    assert [columns.cuts for columns in rules.cuts] == [first, grown, grown]
    assert rules.layout == rules.layout_at(64) == rules.layout_at(0) == CUT.layout
    assert rules.layout_at(128) == rules.layout_at(256)
    assert rules.layout_at(128).cuts == grown
    assert [rules.cut_as(size) for size in (64, 128, 256)] == [0, 128, 256]


def test_without_cuts_no_order_names_a_size() -> None:
    rules = rules_of(PLAIN, Edition.signed(FOUNDER, PLAIN.swarm_id, 1, 3, (128,)))
    assert [columns.cuts for columns in rules.cuts] == [(), ()]
    assert rules.cut_as(64) == rules.cut_as(128) == 0
    assert not rules.columns


def test_cuts_are_kept_by_later_editions() -> None:
    editions = Editions(CUT)
    first = editions.next(FOUNDER, chunk=128, cuts=[Cut("sea", 4), Cut("day", 16)])
    assert editions.learn(first.to_bytes())
    second = editions.next(FOUNDER, replicas=4)
    assert second.cuts == first.cuts == ((Cut("day", 16), Cut("sea", 4)),)
    assert editions.learn(second.to_bytes())
    third = editions.next(FOUNDER, chunk=512, shards=32)
    assert editions.learn(third.to_bytes())
    fourth = editions.next(FOUNDER, chunk=1024, cuts=[Cut("sea", 8)])
    assert editions.learn(fourth.to_bytes())
    assert fourth.cuts == (*first.cuts, (), (Cut("sea", 8),))
    assert len(editions.rules.columns) == 3
    assert editions.rules.layout.shards == 32


@pytest.mark.parametrize(
    ("lists", "says"),
    [
        (([Cut("day", 4)],), "'day' has 4 parts already; it can only be cut into more, not into 4"),
        (([Cut("man", 4)], [Cut("man", 2)]), "'man' has 4 parts already"),
        (([Cut("day", 12)],), "parts of the column 'day' must be a power of two"),
        (([Cut("day", 2 * MOST_PARTS)],), "must be a power of two from 2 to"),
        (([Cut("sea", 2), Cut("sea", 4)],), "'sea' is cut twice"),
        (([Cut("sea\x1f1", 2)],), "is no word"),
        (([], [], [Cut("sea", 2)]), "for no size of chunks"),
    ],
)
def test_other_cuts_are_refused(lists: Lists, says: str) -> None:
    with pytest.raises(EditionError, match=says):
        Editions(CUT).learn(signed(lists))


def test_what_earlier_chunks_were_cut_by_never_changes() -> None:
    editions = Editions(CUT)
    assert editions.learn(signed(([Cut("sea", 2)],), number=1))
    for lists in ((), ([Cut("sea", 4)],), ([], [Cut("sea", 2)])):
        with pytest.raises(EditionError, match="edition 2 cuts chunks of an earlier size"):
            editions.learn(signed(lists, number=2))
    assert editions.learn(signed(([Cut("sea", 2)], []), (128, 256, 512), number=3))


def test_columns_are_cut_only_with_a_new_size() -> None:
    with pytest.raises(EditionError, match="only in chunks of a new size: enlarge the chunks"):
        Editions(CUT).next(FOUNDER, replicas=4, cuts=[Cut("sea", 2)])


def test_a_release_that_knows_no_cuts_reads_editions_without_them() -> None:
    plain = msgspec.msgpack.decode(signed(()))
    assert (len(plain), plain[0]) == (6, 1)
    cut = msgspec.msgpack.decode(signed(([Cut("sea", 2)],)))
    assert (len(cut), cut[0], cut[-1]) == (8, 3, [[["sea", 2]]])
    for fields in ([3, *plain[1:], 0, []], [*plain, 0, [[]]], [*cut[:-1], [[], []]]):
        with pytest.raises(EditionError, match=r"this is not an edition|did not sign"):
            Editions(CUT).learn(msgspec.msgpack.encode(fields))


def test_a_word_that_is_no_text_is_refused() -> None:
    data = signed(([Cut("sea", 2)],))
    with pytest.raises(EditionError, match="this is not an edition"):
        Editions(CUT).learn(data.replace(b"sea", b"s\xeda"))
