"""Phrases of reports: counted nouns, and lists that are cut before they get too long."""

from collections.abc import Iterable, Sequence

from giaann_p2p.swarm.wire.identity import Peer, name_of

_MOST_NAMED = 8


def counted(count: int, what: str) -> str:
    """Return a number with its noun, in the plural unless it is 1."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def names(peers: Sequence[Peer]) -> str:
    """Return the names of the first peers."""
    return some(map(name_of, peers), len(peers))


def some(names: Iterable[str], count: int) -> str:
    """Return the first of `count` names."""
    shown = [name for name, _ in zip(names, range(_MOST_NAMED), strict=False)]
    return ", ".join(shown) + (", ..." if count > _MOST_NAMED else "")
