"""Words that spaCy takes for other words, because it knows words by a hash.

The hash is MurmurHash64A with a seed that everybody knows. Each of its steps can be undone, so of a
word of sixteen letters the first eight may be any, and the last eight follow from the hash that is
wanted. Letters follow for one beginning in some 340,000.
"""

import numpy as np
from spacy.strings import hash_string

from giaann_p2p.model.sequence import Ids

_TIMES = 0xC6A4A7935BD1E995
_SEED = 1
_LENGTH = 16
_WORD = (1 << 64) - 1
_A, _Z, _LOWER = ord("a"), ord("z"), ord("a") - ord("A")


def colliding(word: str) -> str:
    """Return another word with the hash of a word; of the word "" the hash is 0."""
    wanted = hash_string(word) if word else 0
    with np.errstate(over="ignore"):
        before_end = _turned(_untimes(_turned(np.uint64(wanted))))
        chance = np.random.default_rng(wanted % 1000)
        while True:
            starts = chance.integers(_A, _Z + 1, (1 << 20, 8), np.uint8)
            begun = np.uint64(_SEED ^ (_LENGTH * _TIMES & _WORD))
            after_first = _times(begun ^ _times(_turned(_times(starts.view("<u8")[:, 0]))))
            second = _untimes(before_end) ^ after_first
            ends = np.ascontiguousarray(_untimes(_turned(_untimes(second)))).view(np.uint8)
            ends = ends.reshape(-1, 8)
            letter = (ends | _LOWER >= _A) & (ends | _LOWER <= _Z)
            fit = np.flatnonzero(letter.all(axis=1))
            if len(fit):
                return bytes(np.concatenate([starts[fit[0]], ends[fit[0]]])).decode()


def _turned(x: Ids) -> Ids:
    """Return what the hash makes of x when it shifts; done twice, it is x again."""
    return x ^ (x >> np.uint64(47))


def _times(x: Ids) -> Ids:
    return x * np.uint64(_TIMES)


def _untimes(x: Ids) -> Ids:
    return x * np.uint64(pow(_TIMES, -1, 1 << 64))
