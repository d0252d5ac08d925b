"""Words as 64-bit numbers.

A concept and a feature are known by a hash of their lower-case text, so that any peer numbers any
word alone. BLAKE2b rather than a faster hash: whoever writes the text chooses the words, and must
not be able to choose two words with one number. 0 is kept for the prime feature.
"""

import hashlib
from functools import lru_cache

PRIME = 0


@lru_cache(maxsize=1 << 18)
def word_id(word: str) -> int:
    """Return the number of a lower-case word: never `PRIME`."""
    digest = hashlib.blake2b(word.encode("utf-8"), digest_size=8).digest()
    return int.from_bytes(digest, "little") or 1
