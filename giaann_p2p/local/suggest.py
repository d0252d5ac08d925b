"""Which name was meant."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, names: Iterable[str]) -> str:
    """Return a question to put behind an error message; empty if no name is like this one."""
    found = get_close_matches(name, list(names), n=1)
    return f": did you mean {found[0]}?" if found else ""
