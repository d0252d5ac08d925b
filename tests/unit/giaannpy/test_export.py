"""The export: importing it gives the same brain, and the reference finds what it wrote itself."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings

from giaann_p2p import Brain, ModelSpec, UsageError, subword_spec
from giaann_p2p.errors import DiskError
from giaann_p2p.model.delta import Delta, total
from giaann_p2p.model.digest import digest
from giaann_p2p.model.subwords.learn import learn_tokens
from giaann_p2p.model.subwords.spec import segment_of
from giaann_p2p.solo.giaannpy import reading
from giaann_p2p.solo.giaannpy.writing import write
from tests.helpers import DATA
from tests.helpers_subwords import (
    RECOMMENDED,
    REFERENCE,
    Position,
    batch_of,
    random_sequences,
)

BOTH = subword_spec(column_segments=4)
SPECS = [REFERENCE, RECOMMENDED, BOTH, subword_spec(column_segments=2, any_column=False)]


def again(known: Delta, spec: ModelSpec, folder: Path) -> Delta:
    """Write knowledge, and read it."""
    write(known, spec, folder)
    assert reading.spec_of(folder) == spec
    found = reading.read(folder, spec)
    assert (found.nearest, found.rounded, found.left_out, found.unknown) == (0, 0, 0, 0)
    assert not found.flags_only
    return total(found.chunks)


@pytest.mark.slow
@pytest.mark.parametrize("spec", SPECS)
def test_importing_an_export_gives_the_same_brain(spec: ModelSpec, tmp_path: Path) -> None:
    brain, copy = Brain(spec, device="cpu"), Brain(spec, device="cpu")
    brain.train(DATA / "quick.txt", epochs=3)
    done = brain.export_giaannpy(tmp_path / "new" / "database")
    assert (done.columns, done.neurons) == (48, 247)
    copy.import_giaannpy(tmp_path / "new" / "database")
    assert copy.digest() == brain.digest()
    assert [one.name for one in (tmp_path / "new").iterdir()] == ["database"]


@pytest.mark.slow
@pytest.mark.parametrize("spec", [REFERENCE, BOTH])
def test_an_import_can_be_exported_and_imported(
    spec: ModelSpec, database: Path, tmp_path: Path
) -> None:
    brain, copy = Brain(spec, device="cpu"), Brain(spec, device="cpu")
    brain.import_giaannpy(database)
    brain.export_giaannpy(tmp_path / "database")
    copy.import_giaannpy(tmp_path / "database")
    assert copy.digest() == brain.digest()


def test_the_export_holds_what_the_reference_wrote(database: Path, tmp_path: Path) -> None:
    brain, target = Brain(REFERENCE, device="cpu"), tmp_path / "database"
    brain.train(DATA / "quick.txt")
    brain.export_giaannpy(target)

    def files(folder: Path) -> list[Path]:
        return sorted(one.relative_to(folder) for one in folder.rglob("*") if one.is_file())

    assert files(target) == sorted([*files(database), Path("giaann.json")])
    with torch.sparse.check_sparse_tensor_invariants():  # type: ignore[no-untyped-call]
        for file in files(database):
            if file.suffix == ".pkl":
                assert (target / file).read_bytes() == (database / file).read_bytes()
                continue
            ours, theirs = (torch.load(one / file) for one in (target, database))
            assert (ours.dtype, ours.shape, ours.layout) == (
                theirs.dtype,
                theirs.shape,
                theirs.layout,
            )
            assert ours.is_coalesced()
            if file.name == "featureNeurons.pt":
                assert torch.equal(ours.indices()[3].unique(), theirs.indices()[3].unique())
                continue
            assert torch.equal(ours.indices(), theirs.indices())
            by_token = ours.indices()[2] >= 4
            assert torch.allclose(ours.values()[by_token], theirs.values()[by_token], 1e-7)
            assert torch.allclose(ours.values(), theirs.values(), rtol=0, atol=1e-4)


@pytest.mark.slow
@given(random_sequences)
@settings(
    max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_whatever_is_learned_survives(
    tmp_path_factory: pytest.TempPathFactory, corpus: list[list[Position]]
) -> None:
    for spec in (REFERENCE, RECOMMENDED):
        known = learn_tokens(batch_of(corpus), spec)
        found = again(known, spec, tmp_path_factory.mktemp("export") / "database")
        assert digest(found) == digest(known)


@pytest.mark.slow
@pytest.mark.parametrize("times", [256, 4099, 1 << 20])
def test_strengths_of_more_bits_than_the_format_has_survive(times: int, tmp_path: Path) -> None:
    """The reference's fractions have 24 bits; what needs more is written as two that add up."""
    brain = Brain(BOTH, device="cpu")
    brain.train(DATA / "quick.txt")
    once = brain.knowledge
    known = replace(once, count=once.count * times, strength=once.strength * times)
    assert known.strength.max() >= 1 << 24
    assert digest(again(known, BOTH, tmp_path / "database")) == digest(known)


def test_what_the_format_cannot_hold_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "database"
    with pytest.raises(UsageError, match="profile subwords"):
        Brain(ModelSpec(), device="cpu").export_giaannpy(target)
    for spec, words in ((RECOMMENDED, "not the sum"), (REFERENCE, "no whole counts")):
        brain = Brain(spec, device="cpu")
        brain.train(DATA / "quick.txt")
        known = brain.knowledge
        strength = known.strength + (known.segment == segment_of(spec, 2))
        with pytest.raises(UsageError, match=words):
            write(replace(known, strength=strength), spec, target)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_over(tmp_path: Path, database: Path) -> None:
    brain = Brain(REFERENCE, device="cpu")
    brain.import_giaannpy(database)
    (tmp_path / "empty").mkdir()
    brain.export_giaannpy(tmp_path / "empty")
    for name in ("empty", "file"):
        (tmp_path / "file").write_text("mine")
        with pytest.raises(UsageError, match="exists already"):
            brain.export_giaannpy(tmp_path / name)
    with pytest.raises(DiskError, match="cannot be written"):
        brain.export_giaannpy(tmp_path / "file" / "database")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_failed_export_leaves_nothing(
    tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brain = Brain(REFERENCE, device="cpu")
    brain.import_giaannpy(database)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(DiskError, match="No space left"):
        brain.export_giaannpy(tmp_path / "database")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_brain_is_exported(tmp_path: Path) -> None:
    empty = Brain(RECOMMENDED, device="cpu")
    assert empty.export_giaannpy(tmp_path / "database").columns == 0
    other = Brain(RECOMMENDED, device="cpu")
    assert other.import_giaannpy(tmp_path / "database").columns == 0
    assert other.digest() == empty.digest()
