"""What is kept of a row: it is made once, and anew when a row that it depends on changes."""

import gc
import sys
import weakref
from collections.abc import Callable
from types import FrameType
from typing import NamedTuple

import numpy as np
import pytest
from msgspec.structs import replace

from giaann_p2p.model.rows import DeltaRows, Neuron, Question, Row
from giaann_p2p.model.subwords import followers as module
from giaann_p2p.model.subwords.counts import Tally
from giaann_p2p.model.subwords.evidence import CountedRows, Evidence, Place
from giaann_p2p.model.subwords.followers import Followers
from giaann_p2p.model.subwords.gain import Gains, gains_of
from giaann_p2p.model.subwords.ids import ANY, EVERYTHING
from giaann_p2p.model.subwords.learn import learn_tokens
from giaann_p2p.model.subwords.logarithm import Floats
from giaann_p2p.model.subwords.tokeniser import VOCABULARY
from tests.helpers import Shuffled
from tests.helpers_subwords import RECOMMENDED, connections_of, sequences_named

COMMA = Place(11, 147650)
"""A token, in a column, of the first and of the last text of quick.txt."""


class Three(NamedTuple):
    """The rows that the gains of a token depend on."""

    own: Followers
    anywhere: Followers
    everything: Followers

    def gains(self, distance: int = 1) -> Gains:
        """Return those of the own row."""
        return self.own.gains(distance, self.anywhere, self.everything.frequencies)

    def anywhere_gains(self, distance: int = 1) -> Gains:
        """Return those of the row of any column."""
        return self.anywhere.gains(distance, None, self.everything.frequencies)


def rows_of(texts: int, shuffled: bool = False) -> list[Row]:
    """Return the three rows, of a brain that knows so many texts."""
    rows = DeltaRows(learn_tokens(sequences_named("quick")[0:texts], RECOMMENDED))
    evidence = Evidence(CountedRows(RECOMMENDED))
    own = evidence.own(COMMA)
    assert own is not None
    asked = Question([own, evidence.anywhere(COMMA.token), EVERYTHING])
    answer = Shuffled(rows).read(asked) if shuffled else rows.read(asked)
    return [row for row in answer if row is not None]


def three(texts: int, counted: CountedRows | None = None, shuffled: bool = False) -> Three:
    return Three(*map((counted or CountedRows(RECOMMENDED)).of, rows_of(texts, shuffled)))


def equal(one: Gains, other: Gains) -> bool:
    same = np.array_equal(one.token, other.token) and np.array_equal(one.gain, other.gain)
    return same and one.base == other.base


def test_gains_are_made_once_for_all_distances(monkeypatch: pytest.MonkeyPatch) -> None:
    known, made = three(4), list[Tally]()

    def noted(tally: Tally, below: Floats) -> tuple[Gains, ...]:
        made.append(tally)
        return gains_of(tally, below)

    monkeypatch.setattr(module, "gains_of", noted)
    for _ in range(3):
        for distance in range(1, 6):
            known.gains(distance)
            known.anywhere_gains(distance)
    assert made == [known.own.tally, known.anywhere.tally]
    assert len({known.gains(distance).base for distance in range(1, 6)}) == 4  # two weigh the same


@pytest.mark.parametrize("changed", ["anywhere", "everything"])
def test_gains_are_made_anew_when_another_row_changes(changed: str) -> None:
    old, new = three(2), three(4)
    mixed = old._replace(**{changed: getattr(new, changed)})
    before = old.gains()
    assert not equal(mixed.gains(), before)
    fresh = three(2)._replace(**{changed: getattr(three(4), changed)})
    assert equal(mixed.gains(), fresh.gains())
    assert equal(mixed.anywhere_gains(), fresh.anywhere_gains())
    assert equal(old.gains(), before)  # and back again


def test_a_row_that_changes_has_gains_of_its_own() -> None:
    counted = CountedRows(RECOMMENDED)
    old, wanted = three(2, counted), three(4)
    assert not equal(old.gains(), wanted.gains())
    new = three(4, counted)
    assert equal(new.gains(), wanted.gains())
    assert equal(new.anywhere_gains(), wanted.anywhere_gains())
    assert equal(old.gains(), three(2).gains())  # who began with the old rows goes on with them


def test_a_row_of_the_same_content_has_the_same_gains() -> None:
    counted = CountedRows(RECOMMENDED)
    known = three(4, counted)
    gains, again = known.gains(), three(4, counted)
    assert again == known
    assert again.gains() is gains
    other = three(4, counted, shuffled=True)  # the same, in the order of another storage peer
    assert other.own is not known.own
    assert equal(other.gains(), gains)


def test_the_counts_of_a_row_go_with_the_object_read_last() -> None:
    """So whoever reads that object again sees at once that nothing has changed."""
    counted = CountedRows(RECOMMENDED)
    first, again = rows_of(4), rows_of(4)
    assert first[0] is not again[0]
    known = [counted.of(row) for row in first]
    size = counted.nbytes
    assert [counted.of(row) for row in again] == known
    assert [one.row is row for one, row in zip(known, again, strict=True)] == [True] * 3
    assert counted.nbytes == size


def test_a_row_that_takes_anothers_place_does_not_count_twice() -> None:
    counted, alone = CountedRows(RECOMMENDED), CountedRows(RECOMMENDED)
    for row in (*rows_of(2), *rows_of(4)):
        counted.of(row)
    for row in rows_of(4):
        alone.of(row)
    assert counted.nbytes == alone.nbytes


def test_an_own_row_without_one_of_any_column_is_over_the_frequencies() -> None:
    known = three(4)
    frequencies = known.everything.frequencies
    alone = known.own.gains(1, None, frequencies)
    tally = known.own.tally
    wanted = gains_of(tally, frequencies.share[tally.token])[0]
    assert equal(alone, wanted)
    assert not equal(known.gains(), wanted)


def test_gains_keep_no_other_row_in_memory() -> None:
    known = three(4)
    own = known.own
    known.gains()
    gone = [weakref.ref(row) for row in (known.anywhere, known.everything)]
    gone.append(weakref.ref(known.everything.frequencies))
    del known
    gc.collect()
    assert [one() for one in gone] == [None] * 3
    assert own.counts(1).total > 0


def test_neurons_are_found_by_token_and_distance_as_the_rows_have_them() -> None:
    rows = DeltaRows(learn_tokens(sequences_named("wiki")[:4], RECOMMENDED))
    asked = [Neuron(*named) for named in rows.neurons if named[0] != ANY]
    counted, most = CountedRows(RECOMMENDED), 0
    for row in rows.read(Question(asked)):
        assert row is not None
        own = counted.of(row)
        for (distance, token), neurons in connections_of(row).items():
            assert dict(own.times_of(token, distance)) == neurons
            home, feature, times = own.targets(distance)
            here = np.where(feature < 0, home, feature) == token
            assert sorted(times[here].tolist()) == sorted(neurons.values())
            most = max(most, len(neurons))
        assert not own.times_of(VOCABULARY - 1, 1)
    assert most > 1  # some token followed in two columns


def test_the_most_frequent_neurons_come_with_their_shares() -> None:
    own = three(4).own
    times = sorted(own.targets(1).times.tolist(), reverse=True)
    found = own.most_frequent(1)
    assert list(found.values()) == [one / sum(times) for one in times[:8]]
    neurons = set(zip(*(part.tolist() for part in own.targets(1)[:2]), strict=True))
    for token, home, feature in found:
        assert (home, feature) in neurons
        assert token == (home if feature < 0 else feature)


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("lie", ["target", "strength"])
def test_a_liars_connections_count_for_nothing_but_the_others_do(kind: int, lie: str) -> None:
    row = rows_of(4)[kind]
    first = row.target == 0
    if lie == "target":
        strange = replace(row, target_feature=np.append(np.uint64(1), row.target_feature[1:]))
    else:
        strange = replace(row, strength=np.where(first, 1, row.strength))  # below one occurrence
    rest = (field[~first] for field in (row.target, row.segment, row.strength))
    fields = dict(zip(("target", "segment", "strength"), rest, strict=True))
    lies, honest = (CountedRows(RECOMMENDED).of(one) for one in (strange, replace(row, **fields)))
    for distance in range(1, 6):
        for one, other in zip(lies.counts(distance), honest.counts(distance), strict=True):
            assert np.array_equal(one, other)
        for one, other in zip(lies.targets(distance), honest.targets(distance), strict=True):
            assert np.array_equal(one, other)
    assert honest.counts(1).total > 0


class Interrupted:
    """Calls a function once before a line of `Followers.gains`, as if another thread ran there."""

    def __init__(self, line: int, meanwhile: Callable[[], None]) -> None:
        self.left, self._meanwhile = line, meanwhile

    def __call__(self, frame: FrameType, event: str, _: object) -> "Interrupted | None":
        if frame.f_code is not Followers.gains.__code__:
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                self._meanwhile()  # which is not traced
        return self


@pytest.mark.parametrize("changed", ["anywhere", "everything"])
def test_threads_that_use_two_versions_of_a_row_never_mix_them_up(changed: str) -> None:
    ours, new, before = three(2), three(4), sys.gettrace()
    theirs = ours._replace(**{changed: getattr(new, changed)})
    wanted = {one: three(2)._replace(**{changed: getattr(one, changed)}) for one in (ours, theirs)}
    right = {one: other.gains() for one, other in wanted.items()}
    line, interrupted = 0, True
    while interrupted:
        line, interrupted = line + 1, False
        for first, second in [(ours, theirs), (theirs, ours)]:
            for known in (first, second):
                known.gains()

            def meanwhile(first: Three = first, second: Three = second) -> None:
                for known in (first, second):
                    assert equal(known.gains(), right[known])

            trace = Interrupted(line, meanwhile)
            sys.settrace(trace)
            try:
                found = first.gains()
            finally:
                sys.settrace(before)
            assert equal(found, right[first])
            assert equal(second.gains(), right[second])
            assert equal(first.gains(), right[first])
            interrupted |= trace.left <= 0
    assert line > 8
