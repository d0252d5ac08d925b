"""Pickles: flat dictionaries are read as pickle reads them; whatever could run code is refused."""

import contextlib
import os
import pickle
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from giaann_p2p import GiaannError
from giaann_p2p.errors import DatabaseError
from giaann_p2p.solo.giaannpy.plain_pickle import dictionary

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
atoms = texts | st.integers(-(2**31), 2**31 - 1) | st.booleans()


class Runs:
    """An object whose unpickling calls a function."""

    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self.call


@given(st.dictionaries(texts | st.integers(0, 2**31 - 1), atoms), st.integers(2, 5))
def test_a_flat_dictionary_is_read_as_pickle_reads_it(
    flat: dict[str | int, str | int], protocol: int
) -> None:
    found = dictionary(pickle.dumps(flat, protocol), "it")
    assert list(found.items()) == list(flat.items())
    assert list(map(type, found.values())) == list(map(type, flat.values()))


def test_more_than_one_batch_of_items_is_read() -> None:
    flat = {f"word {number % 700} {number}": number for number in range(5000)}
    assert dictionary(pickle.dumps(flat), "it") == flat


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("place", ["whole", "value", "key", "in a list"])
def test_a_pickle_that_would_run_a_command_is_refused_by_name_and_runs_nothing(
    tmp_path: Path, protocol: int, place: str
) -> None:
    mark = tmp_path / "ran"
    poison = Runs(os.system, f"touch {mark}")
    content = {"whole": poison, "value": {"a": poison}, "key": {poison: 1}, "in a list": [poison]}
    with pytest.raises(DatabaseError, match=r"columns/data\.pkl") as caught:
        dictionary(pickle.dumps(content[place], protocol), "columns/data.pkl")
    assert protocol < 2 or place == "in a list" or "asks for code to be run" in str(caught.value)
    assert not mark.exists()
    pickle.loads(pickle.dumps(content[place], protocol))  # noqa: S301  (the poison is one)
    assert mark.exists()


@pytest.mark.parametrize(
    "data",
    [
        b"cos\nsystem\n(S'true'\ntR.",
        b"\x80\x02}(ios\nsystem\nu.",
        b"\x80\x02}(X\x01\x00\x00\x00acos\nsystem\nu.",
        b"\x80\x04}(\x8c\x02os\x8c\x06system\x93K\x01u.",
        b"\x80\x02}(K\x01\x82\x01u.",
        b"\x80\x02}(K\x01P1\nu.",
        b"\x80\x02}(K\x01K\x02Qu.",
        b"\x80\x02}K\x01b.",
        b"\x80\x02}K\x01\x81.",
        b"\x80\x04}(K\x01K\x02\x92.",
    ],
)
def test_every_instruction_that_could_run_code_is_refused(data: bytes) -> None:
    with pytest.raises(DatabaseError, match="asks for code to be run"):
        dictionary(data, "it")


@pytest.mark.parametrize(
    "content", [[1], (1,), {"a": [1]}, {"a": {"b": 1}}, {"a": 1.5}, {"a": None}, {1 << 40: 1}, "a"]
)
def test_anything_but_a_flat_dictionary_is_refused(content: object) -> None:
    with pytest.raises(DatabaseError, match="it "):
        dictionary(pickle.dumps(content), "it")


@given(st.binary(max_size=60) | st.builds(lambda tail: b"\x80\x04}\x94(" + tail, st.binary()))
def test_any_bytes_are_refused_or_read_but_raise_nothing_else(data: bytes) -> None:
    with contextlib.suppress(GiaannError):
        dictionary(data, "it")


def test_every_cut_of_a_pickle_is_refused() -> None:
    whole = pickle.dumps({"some": 1, "words": 70000, "and": "text"})
    for end in range(len(whole)):
        with pytest.raises(DatabaseError, match="damaged"):
            dictionary(whole[:end], "it")
    with pytest.raises(DatabaseError, match="damaged"):
        dictionary(whole + b".", "it")


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x02}r\xff\xff\xff\x7f.",  # a number that unpicklers make room for
        b"\x80\x02}(X\xff\xff\xff\xff.",  # a text of four gigabytes
        b"\x80\x02}(K\x01u.",  # a key without a value
        b"\x80\x02}(h\x05K\x01u.",  # a value that was never numbered
        b"\x80\x02}(X\x02\x00\x00\x00\xff\xffK\x01u.",  # no UTF-8
    ],
)
def test_what_states_more_than_it_holds_is_refused_at_once(data: bytes) -> None:
    started = time.monotonic()
    with pytest.raises(DatabaseError, match="damaged"):
        dictionary(data, "it")
    assert time.monotonic() - started < 10


def test_nesting_costs_no_stack() -> None:
    with pytest.raises(DatabaseError, match="flat"):
        dictionary(b"\x80\x02" + b"]" * 1_000_000 + b".", "it")
    with pytest.raises(DatabaseError, match="flat"):
        dictionary(b"\x80\x02}" + b"(" * 1_000_000 + b"}" * 1_000_000 + b".", "it")
