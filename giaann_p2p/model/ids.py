"""Words as 64-bit numbers.

A concept or a feature is identified by a hash of its lower-case text, so that each peer numbers any
word by itself. The hash is BLAKE2b rather than a faster one: the author of a text chooses the
words, and must not be able to choose two words with one number. 0 is reserved for the prime
feature.
"""

import hashlib
from functools import lru_cache

PRIME = 0


@lru_cache(maxsize=1 << 18)
def word_id(word: str) -> int:
    """Return the number of a lower-case word; never `PRIME`."""
    digest = hashlib.blake2b(word.encode("utf-8"), digest_size=8).digest()
    return int.from_bytes(digest, "little") or 1
