"""Amounts as people write them."""

import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.units import nbytes, rate, readable_bytes, span, whole_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("1000000", 1_000_000),
        ("8GiB", 8 << 30),
        (" 8 gib ", 8 << 30),
        ("1.5 GB", 1_500_000_000),
        ("500m", 500_000_000),
        ("12b", 12),
        ("2TiB", 2 << 40),
        ("64KiB", 65_536),
    ],
)
def test_amounts(text: str, number: int) -> None:
    assert nbytes(text) == number
    assert rate(f"{text}/s") == rate(text) == number


@pytest.mark.parametrize(
    "text", ["", "GiB", "-1", "8 XB", "1e9", "8GiB/s", "1,000", "٣GB", "nan", "9" * 400]
)
def test_what_is_no_amount_is_told_so(text: str) -> None:
    with pytest.raises(UsageError, match="is not a size"):
        nbytes(text)


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("07", 7), ("80", 80), ("81", None), ("080", None), ("9" * 5000, None)]
    + [(text, None) for text in ("", "-1", "1.0", " 1", "٣", "²")],
)
def test_whole_numbers_are_bounded(text: str, number: int | None) -> None:
    assert whole_number(text, 80) == number


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (3 << 29, "1.5 GiB"), (5 << 40, "5.0 TiB")],
)
def test_bytes_are_written_readably(number: int, text: str) -> None:
    assert readable_bytes(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0 s"), (119, "119 s"), (130, "2 min"), (7200, "2 h"), (9.6 * 86_400, "10 days")],
)
def test_times_are_written_in_one_unit(seconds: float, text: str) -> None:
    assert span(seconds) == text
