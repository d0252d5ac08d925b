"""Amounts in the form in which people write them: 8GiB, 500 MB, 1.5 GB/s."""

import re

from giaann_p2p.errors import UsageError

_AMOUNT = re.compile(r"\s*(\d{1,18}(?:\.\d{1,18})?)\s*([A-Za-z]*)\s*", re.ASCII)
_FACTORS: dict[str, int] = {"": 1, "b": 1} | {
    letter + end: base**power
    for power, letter in enumerate("kmgt", 1)
    for end, base in (("ib", 1024), ("b", 1000), ("", 1000))
}


def nbytes(text: str) -> int:
    """Parse a number of bytes; UsageError if the text is not one."""
    found = _AMOUNT.fullmatch(text)
    factor = _FACTORS.get(found[2].lower()) if found else None
    if found is None or factor is None:
        raise UsageError(f"{text!r} is not a size; write it as 8GiB, 500MB or 1000000")
    return round(float(found[1]) * factor)


def whole_number(text: str, most: int) -> int | None:
    """Parse a whole number of 0 to `most`, in ASCII digits; None if the text is none.

    Its length is checked first, because Python refuses to parse thousands of digits.
    """
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(most))):
        return None
    found = int(text)
    return found if found <= most else None


def rate(text: str) -> int:
    """Parse a number of bytes a second; the `/s` may be left out."""
    return nbytes(text.strip().removesuffix("/s"))


def readable_bytes(number: float) -> str:
    """Format a number of bytes with about three digits."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(number) < 1024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TiB"


def span(seconds: float) -> str:
    """Format a time in its largest unit: 40 s, 12 min, 3 h or 9 days."""
    for most, size, unit in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < most:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86_400:.0f} days"
