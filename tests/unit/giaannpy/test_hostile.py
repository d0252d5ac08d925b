"""Folders of strangers: nothing in them runs, no link is followed, and each fault is named."""

import io
import os
import pickle
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from giaann_p2p import Brain, UsageError
from giaann_p2p.errors import DatabaseError
from giaann_p2p.solo.giaannpy import column, reading
from giaann_p2p.solo.giaannpy.tensors import entries, write
from tests.helpers_subwords import REFERENCE
from tests.unit.giaannpy.test_plain_pickle import Runs

COLUMN = "observedColumns/cIndex2223"
NEURONS, ROW = f"{COLUMN}/featureNeurons.pt", f"{COLUMN}/featureConnections/fIndex0.pt"
FLAGS = "conceptFeaturesReferenceSetDelimiterDeterministicList.pkl"
PICKLES = [f"{COLUMN}/data.pkl", "conceptColumnsDict.pkl", "conceptFeaturesDict.pkl", FLAGS]


def refused(folder: Path, named: str) -> str:
    """Return why a database is refused; the reason names the file."""
    brain = Brain(REFERENCE, device="cpu")
    with pytest.raises(DatabaseError, match=named.replace(".", r"\.")) as caught:
        brain.import_giaannpy(folder)
    assert (brain.info().connections, brain.info().texts) == (0, [])
    return str(caught.value)


def changed(file: Path, change: Callable[[np.ndarray, np.ndarray], None]) -> None:
    """Change the places and the values of a tensor file."""
    shape = column.NEURONS_SHAPE if file.name == "featureNeurons.pt" else column.ROW_SHAPE
    found = entries(file.read_bytes(), file, shape)
    change(found.places, found.values)
    with np.errstate(invalid="ignore"):
        write(file, found.places, found.values, shape)


@pytest.mark.parametrize("name", [*PICKLES, NEURONS, ROW])
def test_a_poisoned_file_runs_nothing(copy: Path, tmp_path: Path, name: str) -> None:
    mark = tmp_path / "ran"
    poison = Runs(os.system, f"touch {mark}")
    if name.endswith(".pkl"):
        (copy / name).write_bytes(pickle.dumps({"a": 1, "b": poison}))
    else:
        torch.save(poison, copy / name)
    assert "do not load it with GIAANNpy" in refused(copy, name)
    assert not mark.exists()
    if name == FLAGS:
        pickle.loads((copy / name).read_bytes())  # noqa: S301  (the poison is one)
        assert mark.exists()


@pytest.mark.parametrize("name", [*PICKLES, NEURONS, ROW])
def test_a_damaged_file_is_named(copy: Path, name: str) -> None:
    data = (copy / name).read_bytes()
    (copy / name).write_bytes(data[: len(data) // 2])
    assert "copy the database again" in refused(copy, name)
    (copy / name).write_bytes(b"")
    assert "copy the database again" in refused(copy, name)


@pytest.mark.parametrize("name", [*PICKLES, NEURONS])
def test_a_missing_file_is_named(copy: Path, name: str) -> None:
    (copy / name).unlink()
    assert "is missing" in refused(copy, name)


@pytest.mark.parametrize("name", [*PICKLES, NEURONS, ROW])
def test_links_and_pipes_are_not_followed(copy: Path, tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    shutil.move(copy / name, outside)
    (copy / name).symlink_to(outside)
    assert "links are not followed" in refused(copy, name)
    (copy / name).unlink()
    os.mkfifo(copy / name)
    assert "no plain file" in refused(copy, name)
    (copy / name).unlink()
    (copy / name).mkdir()
    refused(copy, name)


@pytest.mark.parametrize("name", ["observedColumns", COLUMN, f"{COLUMN}/featureConnections"])
def test_linked_folders_are_not_followed(copy: Path, tmp_path: Path, name: str) -> None:
    shutil.move(copy / name, tmp_path / "outside")
    (copy / name).symlink_to(tmp_path / "outside")
    assert "is a link, which is not followed" in refused(copy, name)
    (copy / name).unlink()
    (copy / name).write_text("")
    if name != "observedColumns":
        assert "is no folder" in refused(copy, name)


def test_files_beyond_the_largest_are_not_read(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column, "MOST_TENSOR", 2000)
    assert "such a file has at most 2,000" in refused(copy, "cIndex")
    with (copy / PICKLES[1]).open("ab") as file:
        file.truncate(1 << 40)
    assert "has 1,099,511,627,776 bytes" in refused(copy, PICKLES[1])


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (np.nan, "no number"),
        (-5.0, "negative"),
        (np.inf, "no number"),
        (2.0**29, "a strength or a count is 536,870,912 or more"),
        (5 * 2.0**44, "a strength or a count is 536,870,912 or more"),
        (3.4e38, "a strength or a count is 536,870,912 or more"),
    ],
)
@pytest.mark.parametrize("name", [NEURONS, ROW])
def test_strengths_that_are_none(copy: Path, name: str, value: float, why: str) -> None:
    def change(_places: np.ndarray, values: np.ndarray) -> None:
        values[3] = value

    changed(copy / name, change)
    assert why in refused(copy, name)


@pytest.mark.parametrize("name", [NEURONS, ROW])
def test_the_largest_strengths_can_be_added_up(copy: Path, name: str) -> None:
    def change(_places: np.ndarray, values: np.ndarray) -> None:
        values[:] = np.nextafter(np.float32(1 << 29), np.float32(0))

    changed(copy / name, change)
    brain = Brain(REFERENCE, device="cpu")
    assert brain.import_giaannpy(copy, round_strengths=True).connections > 0


@pytest.mark.parametrize("name", [NEURONS, ROW])
def test_strengths_that_are_no_counts_are_refused_or_rounded(copy: Path, name: str) -> None:
    sound = Brain(REFERENCE, device="cpu")
    sound.import_giaannpy(copy)

    def change(places: np.ndarray, values: np.ndarray) -> None:
        values[int(np.argmax(places[2] == 7))] += 0.01

    changed(copy / name, change)
    why = refused(copy, COLUMN)
    assert "1 strengths that are no whole counts" in why
    assert "--round" in why
    brain = Brain(REFERENCE, device="cpu")
    assert brain.import_giaannpy(copy, round_strengths=True).rounded == 1
    assert brain.digest() == sound.digest()


def test_neurons_that_cannot_be(copy: Path) -> None:
    for dimension, most in ((3, 200_018), (4, 200_019)):
        sound = (copy / ROW).read_bytes()

        def change(places: np.ndarray, _: np.ndarray, at: int = dimension, to: int = most) -> None:
            places[at, -1] = to

        changed(copy / ROW, change)
        assert "special tokens" in refused(copy, ROW)
        (copy / ROW).write_bytes(sound)
    (copy / ROW).rename((copy / ROW).with_name("fIndex5.pt"))
    assert "never occurred" in refused(copy, "fIndex5.pt")


def test_other_shapes_and_types(copy: Path) -> None:
    tensor = torch.load(copy / ROW)
    with torch.sparse.check_sparse_tensor_invariants():  # type: ignore[no-untyped-call]
        for odd in (
            torch.sparse_coo_tensor(tensor.indices(), tensor.values(), (1, 2, 9, 200_019, 200_020)),
            torch.sparse_coo_tensor(tensor.indices()[2:], tensor.values(), (9, 200_019, 200_020)),
            tensor.to(torch.float16),
            tensor.to(torch.float64),
            torch.zeros(1, 1, 9, 2, 2),
        ):
            torch.save(odd, copy / ROW)
            assert "made with other settings" in refused(copy, ROW)


def test_a_bomb_is_not_unpacked(copy: Path) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as parts:
        parts.writestr("fIndex0/data.pkl", b"\x80\x02}.")
        parts.writestr("fIndex0/data/0", bytes(1 << 24))
    (copy / ROW).write_bytes(file.getvalue())
    assert "its parts are not those of a tensor" in refused(copy, ROW)


@pytest.mark.parametrize(
    "content",
    [
        {
            "conceptIndex": 404,
            "nextFeatureIndex": 1,
            "featureConnectionsFormat": "bySourceFeature.v1",
        },
        {"conceptIndex": 2223, "nextFeatureIndex": 1, "featureConnectionsFormat": "other"},
        {},
    ],
)
def test_metadata_of_another_column(copy: Path, content: dict[str, object]) -> None:
    (copy / COLUMN / "data.pkl").write_bytes(pickle.dumps(content))
    assert "is not for column 2223" in refused(copy, f"{COLUMN}/data.pkl")


def test_dictionaries_of_other_tokens(copy: Path) -> None:
    file = copy / "conceptColumnsDict.pkl"
    names = pickle.loads(file.read_bytes())  # noqa: S301  (made by the reference)
    file.write_bytes(pickle.dumps(names, 2))  # the same in another form
    assert reading.read(copy, REFERENCE).columns
    names[" dog"], names[" cat"] = names[" cat"], names[" dog"]
    file.write_bytes(pickle.dumps(names))
    assert "does not number the tokens of o200k" in refused(copy, file.name)
    file.write_bytes(pickle.dumps({"bee": 0, "honey": 1}))
    assert "does not number the tokens of o200k" in refused(copy, file.name)


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ({0: True}, "flags feature 0"),
        ({200_000: True}, "flags feature 200000"),
        ({-1: True}, "flags feature -1"),
        ({5: 2}, "something other than a flag"),
        ({"a": True}, "something other than a flag"),
    ],
)
def test_flags_that_are_none(copy: Path, flags: dict[object, object], why: str) -> None:
    (copy / FLAGS).write_bytes(pickle.dumps(flags))
    assert why in refused(copy, FLAGS)


@pytest.mark.parametrize("content", [b"", b"{}", b"[" * 100_000, b"\xff", b'{"spec": {}}'])
def test_extras_that_are_none(copy: Path, content: bytes) -> None:
    (copy / "giaann.json").write_bytes(content)
    assert "delete it" in refused(copy, "giaann.json")
    with pytest.raises(DatabaseError, match="delete it"):
        reading.spec_of(copy)


def test_other_files_are_counted_and_not_read(copy: Path) -> None:
    (copy / COLUMN / "drawing.png").write_bytes(b"")
    (copy / COLUMN / "featureConnections" / "fIndex01.pt").write_bytes(b"")
    (copy / "notes.txt").symlink_to("/etc/passwd")
    assert reading.read(copy, REFERENCE).unknown == 2


@pytest.mark.parametrize("name", ["5_data.pkl", "cIndex", "cIndex05", "cIndex5x", "..x"])
def test_columns_of_other_releases_are_refused(copy: Path, name: str) -> None:
    (copy / "observedColumns" / name).mkdir()
    assert "must be rebuilt" in refused(copy, name)


def test_a_folder_that_is_no_database(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(UsageError, match="no database of GIAANNpy"):
            Brain(REFERENCE, device="cpu").import_giaannpy(folder)
