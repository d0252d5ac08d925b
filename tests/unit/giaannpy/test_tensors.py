"""Tensor files: sparse ones of the right form are read; all others are refused by name."""

import contextlib
import io
import os
import pickle
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from giaann_p2p.errors import DatabaseError
from giaann_p2p.solo.giaannpy.tensors import entries, write
from tests.unit.giaannpy.test_plain_pickle import Runs

SHAPE = (2, 3, 200_000)


@pytest.fixture(autouse=True)
def _checked() -> Iterator[None]:
    with torch.sparse.check_sparse_tensor_invariants():  # type: ignore[no-untyped-call]
        yield


def sparse(values: list[float], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    places = torch.arange(len(values)).repeat(3, 1) % torch.tensor([[2], [3], [200_000]])
    return torch.sparse_coo_tensor(places, torch.tensor(values, dtype=dtype), SHAPE)


def saved(tensor: object) -> bytes:
    file = io.BytesIO()
    torch.save(tensor, file)
    return file.getvalue()


def repacked(
    data: bytes, change: Callable[[str, bytes], bytes], compression: int = zipfile.ZIP_STORED
) -> bytes:
    """Change the parts of a tensor file."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(file, "w", compression) as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
    return file.getvalue()


def with_pickle(data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    return repacked(data, lambda name, old: change(old) if name.endswith("data.pkl") else old)


def refused(data: bytes) -> str:
    with pytest.raises(DatabaseError, match=r"fIndex7\.pt") as caught:
        entries(data, "fIndex7.pt", SHAPE)
    return str(caught.value)


def test_entries_are_those_of_the_tensor() -> None:
    found = entries(saved(sparse([1.5, 2.5, 10 / 3]).coalesce()), "it", SHAPE)
    assert found.places.tolist() == [[0, 0, 1], [0, 2, 1], [0, 2, 1]]
    assert found.values.tolist() == [1.5, float(np.float32(10 / 3)), 2.5]


def test_entries_at_one_place_add_up() -> None:
    places = torch.tensor([[1, 1, 0], [2, 2, 0], [9, 9, 5]])
    tensor = torch.sparse_coo_tensor(places, torch.tensor([2.0**24, 0.25, 1.0]), SHAPE)
    found = entries(saved(tensor), "it", SHAPE)
    assert found.places.tolist() == [[0, 1], [0, 2], [5, 9]]
    assert found.values.tolist() == [1.0, 2**24 + 0.25]


@given(st.lists(st.integers(1, (1 << 47) - 1), max_size=20, unique=True))
def test_what_is_written_is_read_to_the_last_bit(units: list[int]) -> None:
    values = np.array(units, np.float64) / 65536
    places = np.stack([np.zeros(len(units), np.int64)] * 2 + [np.arange(len(units))])
    file = Path(os.devnull)
    held = io.BytesIO()
    saving = torch.save
    try:
        torch.save = lambda tensor, path: saving(tensor, held)  # type: ignore[assignment]
        write(file, places, values, SHAPE)
    finally:
        torch.save = saving
    found = entries(held.getvalue(), "it", SHAPE)
    assert found.values.tolist() == values.tolist()
    tensor = torch.load(io.BytesIO(held.getvalue()), weights_only=True).coalesce()
    assert tensor.dtype == torch.float32
    assert np.allclose(tensor.values().numpy(), values, rtol=2**-23)


def test_a_file_that_would_run_a_command_runs_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    poison = Runs(os.system, f"touch {mark}")
    assert "may run code" in refused(saved(poison))
    harmful = pickle.dumps(poison, 2)
    assert "may run code" in refused(with_pickle(saved(sparse([1.0])), lambda _old: harmful))
    behind = with_pickle(saved(sparse([1.0])), lambda old: old[:-1] + b"0" + harmful[2:])
    assert "may run code" in refused(behind)
    for file in (harmful, pickle.dumps(poison)):
        refused(file)
    assert not mark.exists()


@pytest.mark.parametrize(
    "named",
    [b"cbuiltins\nbytearray\n", b"\x80\x04\x8c\x08builtins\x8c\x09bytearray\x93", b"\x82\x01"],
)
def test_what_no_tensor_needs_is_not_named(named: bytes) -> None:
    """PyTorch would allow the first, and make as large an array as the file says."""
    large = named + b"(J\xff\xff\xff\x7ftR0"
    assert "was refused" in refused(with_pickle(saved(sparse([1.0])), lambda old: large + old))


def test_other_forms_are_refused() -> None:
    assert "torch.float16" in refused(saved(sparse([1.0], torch.float16)))
    assert "torch.float64" in refused(saved(sparse([1.0], torch.float64)))
    assert "(3, 3, 200000)" in refused(
        saved(
            torch.sparse_coo_tensor(
                torch.zeros(3, 1, dtype=torch.int64), torch.ones(1), (3, 3, 200_000)
            )
        )
    )
    assert "no sparse tensor" in refused(saved(torch.zeros(2, 3)))
    refused(saved({"a": 1}))
    refused(saved([sparse([1.0])]))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, -0.001])
def test_strengths_that_are_none_are_refused(value: float) -> None:
    assert "negative or no number" in refused(saved(sparse([1.0, value])))


def test_places_and_values_that_do_not_fit_are_refused() -> None:
    with torch.sparse.check_sparse_tensor_invariants(False):  # type: ignore[no-untyped-call]
        tensor = sparse([1.0, 2.0])
        for places, values in (((3, 2), (3,)), ((3, 2), (1,)), ((2, 2), (2,)), ((3, 2), (2, 1))):
            data = with_pickle(saved(tensor), _shapes(places, values))
            refused(data)


def _shapes(places: tuple[int, ...], values: tuple[int, ...]) -> Callable[[bytes], bytes]:
    """Return a change of the shapes that a file's pickle states."""
    old = b"K\x03K\x02\x86", b"K\x02\x85"

    def change(pickle: bytes) -> bytes:
        assert all(one in pickle for one in old)
        new = [b"(" + b"".join(b"K" + bytes([n]) for n in one) + b"t" for one in (places, values)]
        first = pickle.replace(old[0], new[0], 1)
        return first.replace(old[1], new[1], 1)

    return change


def test_zeros_are_no_entries() -> None:
    assert entries(saved(sparse([0.0, 2.0])), "it", SHAPE).values.tolist() == [2.0]
    assert len(entries(saved(sparse([])), "it", SHAPE).values) == 0


def test_an_entry_outside_the_tensor_is_refused() -> None:
    with torch.sparse.check_sparse_tensor_invariants(False):  # type: ignore[no-untyped-call]
        for place in (-1, 200_000, 1 << 60):
            places = torch.tensor([[0], [0], [place]])
            refused(saved(torch.sparse_coo_tensor(places, torch.ones(1), SHAPE)))


def test_more_entries_than_the_file_holds_are_refused() -> None:
    """A tensor may repeat one number of the file, so that a small file states a large tensor."""
    count = 10_000_000
    places = torch.zeros(3, 1, dtype=torch.int64).expand(3, count)
    data = saved(torch.sparse_coo_tensor(places, torch.ones(1).expand(count), SHAPE))
    assert len(data) < 10_000
    assert "more entries than it holds" in refused(data)


def test_packed_parts_are_refused() -> None:
    data = saved(sparse([1.0] * 5000))
    assert entries(repacked(data, lambda _name, old: old), "it", SHAPE)
    assert "damaged" in refused(repacked(data, lambda _name, old: old, zipfile.ZIP_DEFLATED))


def test_a_long_description_is_refused() -> None:
    data = with_pickle(saved(sparse([1.0])), lambda old: b"K\x000" * 40_000 + old)
    assert "too long" in refused(data)


def test_every_cut_and_each_changed_byte_is_refused_or_read() -> None:
    data = saved(sparse([1.0, 2.0]))
    for end in range(0, len(data), 7):
        refused(data[:end])
    for at in range(0, len(data), 5):
        changed = data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :]
        with contextlib.suppress(DatabaseError):
            assert len(entries(changed, "fIndex7.pt", SHAPE).values) <= 2
