"""The reference's numbers for tokens: its two dictionaries, and the tokens that they must name.

A concept has the number of its token. Feature 0 is the prime feature, and a token's feature has the
token's number plus 1.
"""

import pickle
from collections.abc import Mapping
from functools import lru_cache

from giaann_p2p.errors import DatabaseError
from giaann_p2p.model.subwords.tokeniser import TOKENS, VOCABULARY, Tokeniser

CONCEPTS, FEATURES = VOCABULARY, VOCABULARY + 1
"""The numbers of concepts and of features."""
PRIME_FEATURE = 0

_PRIME_NAME = "variablePrimeConceptFeatureNeuron"
_PARTIAL, _NONE = "<tokeniserSubwordByte:{}>", "<tokeniserSubwordInvalidToken:{}>"
_SPECIAL = {199_999: "<|endoftext|>", 200_018: "<|endofprompt|>"}


def concepts_named(known: Tokeniser) -> dict[str, int]:
    """Return the number of each concept by name, in order."""
    named = zip(known.texts, known.bytes, strict=True)
    names = [_PARTIAL.format(data.hex()) if text is None else text for text, data in named]
    names += [_SPECIAL.get(token, _NONE.format(token)) for token in range(TOKENS, VOCABULARY)]
    return {name: token for token, name in enumerate(names)}


def features_named(known: Tokeniser) -> dict[str, int]:
    """Return the number of each feature by name, in order."""
    after = {name: token + 1 for name, token in concepts_named(known).items()}
    return {_PRIME_NAME: PRIME_FEATURE} | after


@lru_cache(maxsize=1)
def written(known: Tokeniser) -> tuple[bytes, bytes]:
    """Return the files of the two dictionaries as the reference writes them.

    They are the same for all databases, and making them takes longer than reading a small one.
    """
    concepts, features = concepts_named(known), features_named(known)
    return pickle.dumps(concepts, protocol=4), pickle.dumps(features, protocol=4)


def check_names(
    found: Mapping[str | int, str | int], named: Mapping[str, int], file: object
) -> None:
    """Raise DatabaseError unless a dictionary numbers the tokens as the reference does."""
    if found != named:
        raise DatabaseError(
            f"{file} does not number the tokens of o200k; only databases of subwords can be read, "
            "made with the current defaults of GIAANNpy"
        )
