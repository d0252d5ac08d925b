"""docs/scale.md tells what the code computes today; what the tables rest on is right."""

import itertools
import random
from collections.abc import Iterator
from math import comb

import numpy as np
import pytest
import torch

from giaann_p2p.model.delta import total
from giaann_p2p.model.rows import Name
from giaann_p2p.store.cut_columns import cut_columns
from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.members.placement import Placement
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Compared, Refusal, decode, encode
from giaann_p2p.swarm.wire.record import read as read_record
from tests.benchmarks.scale import anti_entropy, columns, cuts, directory, repair, swarms, training
from tests.benchmarks.scale.lessons import learned
from tests.benchmarks.scale.page import MEASURED, PAGE, TABLES
from tests.benchmarks.scale.tables import Table, number, read, replaced, size

PAGE_TEXT = PAGE.read_text()


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Small sums are made much sooner by one thread where others are at work, too."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


_LARGE = {"cuts", "fullest", "reads", "columns"}
"""The tables whose columns are chosen by a large sample of text, which takes half a minute."""


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(one, id=one.name, marks=[pytest.mark.slow] if one.name in _LARGE else [])
        for one in TABLES
    ],
)
def test_the_page_is_up_to_date(table: Table) -> None:
    told = read(PAGE_TEXT, table.name)
    assert tuple(told)[1:] == table.columns
    assert told[table.columns[0]] == table.column(0), "make it anew: scripts/scale"


def test_what_was_measured_is_there() -> None:
    told = read(PAGE_TEXT, MEASURED.name)
    assert tuple(told)[1:] == MEASURED.columns
    assert all(told[MEASURED.columns[0]].values())


def test_every_table_of_the_page_is_made() -> None:
    assert PAGE_TEXT.count("<!-- end of") == len(TABLES) + 1


def test_a_table_is_written_and_read_back() -> None:
    table = Table("one", ("a", "b"), lambda at: {"x": str(at), "y, z": "1, 2"})
    page = replaced("before\n<!-- one -->\nold\n<!-- end of one -->\nbehind\n", "one", table.text())
    assert page.startswith("before\n")
    assert page.endswith("\nbehind\n")
    assert "old" not in page
    assert read(page, "one")["b"] == table.column(1)
    assert replaced(page, "one", table.text()) == page
    for wrong in (lambda: read(page, "two"), lambda: replaced(page, "two", "")):
        with pytest.raises(KeyError):
            wrong()


@pytest.mark.parametrize(
    ("value", "told"),
    [(0, "0"), (0.077, "0.077"), (7, "7"), (7.68, "7.7"), (12.34, "12.3"), (1234.5, "1,234")],
)
def test_numbers(value: float, told: str) -> None:
    assert number(value) == told


def test_sizes() -> None:
    told = [size(nbytes) for nbytes in (0, 999, 1000, 15_258, 3.2e7, 1e12)]
    assert told == ["0 B", "999 B", "1 kB", "15.3 kB", "32 MB", "1 TB"]


def test_the_number_of_shards_is_enough() -> None:
    assert [swarms.fitting(peers) for peers in swarms.PEERS] == [4_096, 65_536, 65_536]


def test_records_are_real() -> None:
    data = directory.record(100, 256, 7)
    found = read_record(data, directory.NOW, directory.SWARM, Rules(256))
    assert found.peer == swarms.identities(100)[7].peer


def test_the_chance_to_lose_all_owners_against_counting() -> None:
    peers, lost = 8, 4
    draws = list(itertools.combinations(range(peers), lost))
    hit = sum(set(range(swarms.REPLICAS)) <= set(draw) for draw in draws)
    assert len(draws) == comb(peers, lost)
    assert repair.all_lost(peers, lost) == pytest.approx(hit / len(draws))
    assert repair.all_lost(100, 2) == 0


def test_a_repair_sends_each_gain_once_and_what_nobody_has_never() -> None:
    members = dict(itertools.islice(swarms.members(100).items(), 12))
    before = Placement.of(members, 256, swarms.REPLICAS)
    lost = set(random.Random(1).sample(before.peers, 5))
    after = Placement.of({p: c for p, c in members.items() if p not in lost}, 256, 3)
    found = repair.between(before, after)
    orphans = sum(set(before.owners(shard)) <= lost for shard in range(256))
    gains = sum(len(part.gains) for part in before.moves(after).values())
    assert orphans == found.orphans > 0
    assert found.received.sum() == gains - swarms.REPLICAS * orphans
    assert found.sent.sum() == pytest.approx(found.received.sum())


def test_a_repair_takes_as_long_as_its_slowest() -> None:
    found = repair.Repair(np.array([2.0, 0.0]), np.array([0.0, 3.0]), 0)
    begun = repair.DETECTION + repair.BEGUN
    assert repair.seconds(found, 1e9, 1e8) == pytest.approx(begun + 30)
    assert repair.seconds(found, 1.0, 1e8) == pytest.approx(begun + 2 * repair.ASKED)


def test_partners_share_what_they_compare() -> None:
    placed = swarms.placement(100, swarms.fitting(100))
    mine = placed.shards_of(placed.peers[3])
    partners = anti_entropy.shared(100, 3)
    assert sum(map(len, partners)) == (swarms.REPLICAS - 1) * len(mine)
    assert all(np.isin(shards, mine).all() for shards in partners)


@pytest.mark.parametrize("groups", anti_entropy.GROUPS)
def test_answers_are_real(groups: str) -> None:
    said = anti_entropy.answer(5, groups)
    told: Message = decode(encode(said))
    assert told == said
    assert isinstance(told, Compared)
    sets = {"all sets equal": 0, "one set here, another there": 1}.get(groups, 5)
    assert len(told.sets) == len(set(told.sets)) == sets


@pytest.mark.parametrize("sentences", training.CHUNKS)
def test_each_holder_is_told_once_and_rows_leave_once(sentences: int) -> None:
    pushes = training.pushed(100, sentences)
    whole = len(training.Lesson.of(sentences, swarms.fitting(100)).whole)
    assert pushes.messages == 100 + 1
    assert whole < pushes.sent < whole + 101 * 400
    assert pushes.fetched > 2 * whole


def test_a_chunk_that_is_not_committed_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "_answer", lambda question: Refusal("no"))
    with pytest.raises(AssertionError, match="not committed"):
        training.pushed.__wrapped__(100, 64)


def test_what_is_behind_some_chunks_and_these_are_the_whole() -> None:
    both = total([learned(2), learned(3, 2)])
    assert both.neurons == learned(5).neurons
    assert np.array_equal(both.strength, learned(5).strength)


@pytest.mark.slow
def test_a_reader_asks_one_peer_for_a_row_and_several_for_parts() -> None:
    columns_cut = cut_columns(cuts.chosen(256, 256))
    most = max(columns_cut.cuts, key=lambda cut: cut.parts)
    parts = columns_cut.parts(Name(most.word, None).neuron)
    homes = {Layout(shards=256, blocks=256).shard_of(*part) for part in parts}
    assert cuts.asked_for(parts[:1], 100, 256, 256) == 1
    assert 1 < cuts.asked_for(parts, 100, 256, 256) <= len(homes) <= len(parts)


@pytest.mark.slow
def test_the_longest_row_of_the_largest_column_is_cut() -> None:
    whole, some, more = columns.largest(), columns.in_parts(16), columns.in_parts(64)
    assert whole.shards[256] < some.shards < more.shards
    assert whole.fullest[256] > some.fullest > more.fullest
    assert 1 < some.asked <= 16 < more.asked <= 64
