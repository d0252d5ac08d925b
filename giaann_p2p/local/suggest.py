"""Suggests the name that a user probably meant."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, names: Iterable[str]) -> str:
    """Return a suggestion to append to an error message; empty if none of `names` is similar."""
    found = get_close_matches(name, list(names), n=1)
    return f": did you mean {found[0]}?" if found else ""
