"""Which columns to cut: what a founder names, and what a sample of the text shows."""

from dataclasses import replace

import numpy as np
import pytest

from giaann_p2p import subword_spec
from giaann_p2p.errors import SpecError, UsageError
from giaann_p2p.model.delta import Delta, total
from giaann_p2p.model.learn import learn
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.store import cut_choice
from giaann_p2p.store.cut_choice import cuts_for, named_cuts, of_nouns, spread
from giaann_p2p.store.cuts import MARK, MOST_ALL, MOST_PARTS, Cut, checked
from giaann_p2p.store.layout import Layout
from tests.helpers import SMALL, built

LAYOUT = Layout(shards=16)


def sample(nouns: int = 300, sentences: int = 400) -> Delta:
    """Return what sentences teach of which some nouns are much more frequent than others."""
    rng = np.random.default_rng(1)
    said = []
    for _ in range(sentences):
        noun = min(nouns - 1, rng.zipf(1.4))
        around = [f"w{n}/" for n in rng.integers(0, 60, 12)]
        said.append(" ".join([*around[:6], f"noun{noun}/N", *around[6:]]))
    return total([learn(built(*said[n : n + 50]), SMALL) for n in range(0, sentences, 50)])


SAMPLE = sample()


def test_what_is_named_is_cut() -> None:
    assert named_cuts("") == ()
    assert named_cuts("sea=4, day=16") == (Cut("day", 16), Cut("sea", 4))
    assert named_cuts("a=b=2") == (Cut("a=b", 2),)


def test_nouns_are_cut_by_the_names_of_their_columns() -> None:
    cuts = named_cuts("Day=16,fire engine=4")
    assert of_nouns(cuts, ModelSpec()) == (Cut("day", 16), Cut("fire_engine", 4))
    assert {cut.word for cut in of_nouns([Cut("day", 8)], subword_spec())} == {
        *(" day", "day", " Day", "Day")
    }
    assert of_nouns([Cut("any column", 8)], subword_spec()) == (Cut("any column", 8),)
    assert of_nouns(named_cuts("day=2,Day=4"), ModelSpec()) == (Cut("day", 4),)


@pytest.mark.parametrize(
    "text", ["day", "day=", "=4", "day=x", "day=-4", "day=4,,", "day=" + "9" * 5000]
)
def test_what_is_no_column_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no column with its number of parts: give WORD=PARTS"):
        named_cuts(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("day=3", "must be a power of two from 2 to"),
        ("day=1", "must be a power of two from 2 to"),
        (f"day={2 * MOST_PARTS}", "must be a power of two from 2 to"),
        ("day=2,day=4", "'day' is cut twice"),
        (f"day{MARK}1=2", "is no word"),
        (",".join(f"w{n}={MOST_PARTS}" for n in range(MOST_ALL // MOST_PARTS + 1)), "parts in all"),
    ],
)
def test_columns_that_cannot_be_cut_so_are_refused(text: str, says: str) -> None:
    with pytest.raises(SpecError, match=says):
        named_cuts(text)


def test_what_cannot_be_named_is_not_chosen() -> None:
    words = ["noun1", "noun2", "noun3", "noun4"]
    strange = dict(
        zip(
            words,
            [
                "x" * 101,
                "a\x1f2",
                "\x07",
                "of\u2028",
            ],
            strict=True,
        )
    )
    names = {word: strange.get(text, text) for word, text in SAMPLE.names.items()}
    cuts = cuts_for(replace(SAMPLE, names=names), LAYOUT)
    assert {cut.word for cut in cuts} == {cut.word for cut in cuts_for(SAMPLE, LAYOUT)} - {*words}
    for word in (*strange.values(), "", "\udcff"):
        with pytest.raises(SpecError, match="is no word"):
            named_cuts(f"{word}=4") if word and word.isprintable() else checked([Cut(word, 4)])


def test_large_columns_are_cut_and_small_ones_are_not() -> None:
    cuts = cuts_for(SAMPLE, LAYOUT)
    sizes = dict[str, int]()
    for concept, length in zip(SAMPLE.concept.tolist(), SAMPLE.lengths.tolist(), strict=True):
        name = SAMPLE.names[concept]
        sizes[name] = sizes.get(name, 0) + length
    most = SAMPLE.connections / LAYOUT.shards / 8
    parts = {cut.word: cut.parts for cut in cuts}
    assert 3 < len(parts) < len(sizes)
    for word, size in sizes.items():
        assert size / parts.get(word, 1) <= most
        assert word not in parts or size / parts[word] > most / 2


def test_shards_are_more_even_with_the_cuts() -> None:
    before, after = (spread(SAMPLE, LAYOUT, cuts) for cuts in ((), cuts_for(SAMPLE, LAYOUT)))
    assert before.largest > 3
    assert after.largest < 1.5
    assert before.parts == 0 < after.parts


def test_columns_are_only_cut_further() -> None:
    cuts = cuts_for(SAMPLE, LAYOUT)
    assert cuts_for(SAMPLE, LAYOUT, cuts) == ()
    further = cuts_for(SAMPLE, LAYOUT.with_shards(32), cuts)
    known = {cut.word: cut.parts for cut in cuts}
    assert all(cut.parts > known.get(cut.word, 1) for cut in further)
    assert {*known} <= {cut.word for cut in further}


def test_blocks_leave_less_to_cut() -> None:
    in_blocks = cuts_for(SAMPLE, Layout(shards=16, blocks=16))
    assert sum(cut.parts for cut in in_blocks) < sum(cut.parts for cut in cuts_for(SAMPLE, LAYOUT))


def test_all_are_cut_more_coarsely_where_there_would_be_too_many_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    finely, whole = cuts_for(SAMPLE, LAYOUT), spread(SAMPLE, LAYOUT, ())
    parts = sum(cut.parts for cut in finely)
    monkeypatch.setattr(cut_choice, "MOST_ALL", parts // 2)
    coarsely = cuts_for(SAMPLE, LAYOUT)
    finest = {cut.word: cut.parts for cut in finely}
    assert parts / 8 < sum(cut.parts for cut in coarsely) <= parts / 2
    assert all(cut.parts < finest[cut.word] for cut in coarsely)
    assert spread(SAMPLE, LAYOUT, coarsely).largest < whole.largest / 2


def test_the_largest_columns_are_cut_where_there_would_be_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    finely = sorted(cuts_for(SAMPLE, LAYOUT), key=lambda cut: -cut.parts)
    monkeypatch.setattr(cut_choice, "MOST_CUT", 4)
    coarsely = {cut.word: cut.parts for cut in cuts_for(SAMPLE, LAYOUT)}
    assert 2 <= len(coarsely) <= 4 < len(finely)
    least = min(cut.parts for cut in finely if cut.word in coarsely)
    assert all(cut.parts <= least for cut in finely if cut.word not in coarsely)


def test_what_was_cut_before_counts_towards_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [Cut("elsewhere", 64), Cut("noun1", 2)]
    monkeypatch.setattr(cut_choice, "MOST_ALL", 64 + 20)
    monkeypatch.setattr(cut_choice, "MOST_CUT", 4)
    cuts = cuts_for(SAMPLE, LAYOUT, before)
    after = {cut.word: cut.parts for cut in [*before, *cuts]}
    assert "noun1" in {cut.word for cut in cuts}
    assert 64 < sum(after.values()) <= 64 + 20
    assert len(after) <= 4


def test_the_largest_columns_are_cut_where_not_all_can_be() -> None:
    wide = Layout(shards=1 << 16)
    cuts = cuts_for(SAMPLE, wide)
    assert max(cut.parts for cut in cuts) == MOST_PARTS
    assert sum(cut.parts for cut in cuts) <= MOST_ALL
    assert "noun1" in {cut.word for cut in cuts if cut.parts == MOST_PARTS}
