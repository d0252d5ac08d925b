"""The import of a database that the reference wrote: its connections are those of the golden."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from giaann_p2p import Brain, ModelSpec, UsageError, subword_spec
from giaann_p2p.model.delta import Delta, total
from giaann_p2p.model.digest import digest
from giaann_p2p.model.subwords.ids import ANY, DETERMINISTIC, PROBABILISTIC
from giaann_p2p.solo.giaannpy import reading
from giaann_p2p.solo.giaannpy.learning import learn
from giaann_p2p.store.store import Store
from tests.helpers import DATA, GOLDENS
from tests.helpers_subwords import RECOMMENDED, REFERENCE, golden_connections, learned

QUICK = DATA / "quick.txt"


def taught(spec: ModelSpec) -> Brain:
    brain = Brain(spec, device="cpu")
    brain.train(QUICK)
    return brain


def imported(spec: ModelSpec, database: Path) -> Brain:
    brain = Brain(spec, device="cpu")
    brain.import_giaannpy(database)
    return brain


def without_delimiters(known: Delta) -> Delta:
    counted = np.array([DETERMINISTIC, PROBABILISTIC], np.uint64)
    return known.only(~np.isin(known.concept, counted))


def test_every_connection_is_the_goldens(brain: Brain, database: Path) -> None:
    report = brain.import_giaannpy(database)
    assert (report.columns, report.neurons, report.connections) == (48, 247, 5527)
    assert (report.left_out, report.rounded, report.unknown) == (0, 0, 0)
    assert report.flags_only
    golden = golden_connections("v2m_quick")
    found = learned(brain.knowledge, REFERENCE)
    assert found.connections.keys() == golden.keys()
    off = [abs(units / 2**16 - golden[key]) for key, units in found.connections.items()]
    assert max(off) < 0.0005
    flags = json.loads((GOLDENS / "v2m_quick/delimiters.json").read_text())
    assert found.delimiters == {
        **{("d", token): 1 for token in flags["deterministic"]},
        **{("p", token): 1 for token in flags["probabilistic"]},
    }


@pytest.mark.parametrize("spec", [RECOMMENDED, subword_spec(any_column=False)])
def test_all_but_delimiters_is_what_a_brain_learns_from_the_text(
    spec: ModelSpec, database: Path
) -> None:
    """Exactly, to the last byte; only how often a token was a delimiter is not in a database."""
    ours, theirs = taught(spec).knowledge, imported(spec, database).knowledge
    assert digest(without_delimiters(ours)) == digest(without_delimiters(theirs))
    assert without_delimiters(ours).names == without_delimiters(theirs).names
    assert np.array_equal(ours.concept, theirs.concept)
    assert np.array_equal(ours.feature, theirs.feature)
    more = ours.count > theirs.count
    assert set(ours.concept[more].tolist()) <= {DETERMINISTIC, PROBABILISTIC}


def test_rows_that_ignore_columns_have_no_connections_by_distance_in_columns(
    database: Path,
) -> None:
    spec = subword_spec(column_segments=4)
    ours, theirs = taught(spec).knowledge, imported(spec, database).knowledge
    anywhere = [known.only(known.concept == np.uint64(ANY)) for known in (ours, theirs)]
    assert digest(anywhere[0]) == digest(anywhere[1])
    assert anywhere[0].connections == 6895 - 5527


def test_sums_by_column_are_off_by_one_unit_at_most(database: Path) -> None:
    ours, theirs = taught(REFERENCE).knowledge, imported(REFERENCE, database).knowledge
    assert np.array_equal(ours.target, theirs.target)
    assert np.array_equal(ours.segment, theirs.segment)
    off = np.abs(ours.strength - theirs.strength)
    assert (int(off.max()), int((off > 0).sum())) == (1, 90)
    assert not off[ours.segment >= 4].any()


def test_connections_that_the_model_lacks_are_counted(database: Path) -> None:
    brain = Brain(RECOMMENDED, device="cpu")
    report = brain.import_giaannpy(database)
    assert (report.connections, report.left_out, report.nearest) == (1304, 4223, 0)
    few = Brain(subword_spec(column_segments=1), device="cpu").import_giaannpy(database)
    assert few.connections + few.left_out == 5527
    assert 1304 < few.connections < 5527


def test_an_imported_brain_answers(database: Path) -> None:
    brain = imported(RECOMMENDED, database)
    answer = brain.generate("Anarchism is a political", max_tokens=6)
    assert answer.text == " philosophy and movement that is scept"
    assert brain.evaluate(QUICK).accuracy == taught(RECOMMENDED).evaluate(QUICK).accuracy > 0.98


def test_the_same_database_is_imported_once(brain: Brain, database: Path, copy: Path) -> None:
    shown: list[float] = []
    first = brain.import_giaannpy(database, progress=shown.append)
    assert (first.known, shown[-1], len(shown)) == (False, 1.0, 48)
    before = brain.digest()
    assert brain.import_giaannpy(database).known
    assert brain.digest() == before
    (job,) = brain.info().texts
    assert job.name == f"{database} (a database of GIAANNpy)"
    assert (job.chunks, job.complete) == (1, True)
    assert not brain.import_giaannpy(copy).known  # another content
    assert brain.digest() != before


def test_the_place_of_a_database_does_not_matter(brain: Brain, copy: Path, tmp_path: Path) -> None:
    brain.import_giaannpy(copy)
    moved = copy.rename(tmp_path / "moved")
    assert brain.import_giaannpy(moved).known


@pytest.mark.slow
def test_chunks_add_up_and_an_interrupted_import_goes_on(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for spec in (RECOMMENDED, REFERENCE):
        whole = reading.read(database, spec)
        with monkeypatch.context() as patch:
            patch.setattr(reading, "_CHUNK", 100)
            parts = reading.read(database, spec)
        assert len(parts.chunks) > 5
        assert digest(total(parts.chunks)) == digest(total(whole.chunks))
        brain = Brain(spec, device="cpu")
        with monkeypatch.context() as patch:
            patch.setattr(Store, "apply", _third_time_fails(Store.apply))
            with pytest.raises(KeyboardInterrupt):
                brain.add_database(parts)
        (job,) = brain.info().texts
        assert (job.chunks, job.complete) == (2, False)
        assert not learn(brain._store, parts).known
        assert brain.digest() == imported(spec, database).digest()


def _third_time_fails(apply: Callable[..., object]) -> Callable[..., object]:
    calls = []

    def failing(*arguments: object) -> object:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return apply(*arguments)

    return failing


def test_a_database_and_a_text_add_up(database: Path) -> None:
    both = imported(RECOMMENDED, database)
    both.train(DATA / "wiki.txt")
    other = Brain(RECOMMENDED, device="cpu")
    other.train(DATA / "wiki.txt")
    other.import_giaannpy(database)
    assert both.digest() == other.digest()


def test_brains_of_another_kind_are_refused(database: Path) -> None:
    with pytest.raises(UsageError, match="profile subwords, but this brain has words"):
        Brain(ModelSpec(), device="cpu").import_giaannpy(database)
    with pytest.raises(UsageError, match="4 column segments, but this brain's model has 5"):
        Brain(subword_spec(column_segments=5), device="cpu").import_giaannpy(database)
    with pytest.raises(UsageError, match="another model"):
        Brain(RECOMMENDED, device="cpu").add_database(reading.read(database, REFERENCE))
