"""Nouns in the order of their names, so that they are found by prefix."""

from bisect import bisect_left
from collections.abc import Iterable
from heapq import nsmallest

from giaann_p2p.gateway.views import Found, FoundNoun

_LAST = "\U0010ffff"


class NounIndex:
    """The nouns of a model with their counts. A search takes milliseconds among 100,000."""

    def __init__(self, nouns: Iterable[tuple[str, int]] = ()) -> None:
        """Take nouns with their numbers of occurrences, in any order."""
        keyed = sorted((_key(name), name, count) for name, count in nouns)
        self._keys = [key for key, _, _ in keyed]
        self._nouns = [(name, count) for _, name, count in keyed]

    def __len__(self) -> int:
        return len(self._nouns)

    def search(self, prefix: str, most: int, note: str = "") -> Found:
        """Return nouns that begin with a text, in any case, the most frequent first."""
        key = _key(prefix)
        start, end = bisect_left(self._keys, key), bisect_left(self._keys, key + _LAST)
        best = nsmallest(most, self._nouns[start:end], key=lambda noun: (-noun[1], noun[0]))
        found = [FoundNoun(noun=name, occurrences=count) for name, count in best]
        return Found(found=found, of=end - start, note=note)


def _key(name: str) -> str:
    """Return a noun as it is searched for: in lower case, without a token's leading space."""
    return "_".join(name.lower().split())
