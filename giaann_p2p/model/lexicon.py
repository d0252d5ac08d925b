"""Classifies words as delimiters of columns: a pure function of the word, from lists in `data/`.

A word that can ever be a verb or an adposition is a deterministic delimiter. A word that can be a
conjunction is a probabilistic one, which counts only if there is no deterministic one. Context
never matters, so that learning does not depend on order. The lists are part of the package, so that
no release of another library can change the model.
"""

import hashlib
from enum import IntEnum
from functools import cache
from importlib import resources

from giaann_p2p.errors import PipelineError
from giaann_p2p.model.spec import ModelSpec

_CERTAIN = frozenset(";:.?!")
_LIKELY = frozenset(["is", "are", ",", "("])


class Delimiter(IntEnum):
    """How strongly a word separates the column on its left from the one on its right."""

    NONE = 0
    PROBABILISTIC = 1
    DETERMINISTIC = 2


def delimiter(word: str) -> Delimiter:
    """Return the class of a lower-case word."""
    return _classes().get(word, Delimiter.NONE)


def require(spec: ModelSpec) -> None:
    """Raise PipelineError unless the lists are those of the spec."""
    if spec.lexicon != digest():
        raise PipelineError(
            f"the model needs word lists {spec.lexicon}, but this giaann-p2p has {digest()}; "
            "install the release of giaann-p2p that the model was made with"
        )


@cache
def digest() -> str:
    """Return the digest of the lists, which is part of the spec."""
    lines = (f"{word}\t{kind.value}\n" for word, kind in sorted(_classes().items()))
    return hashlib.blake2b("".join(lines).encode(), digest_size=16).hexdigest()


@cache
def _classes() -> dict[str, Delimiter]:
    closed = [line.split("\t") for line in _lines("closed_classes.tsv")]
    certain = _CERTAIN.union(_lines("verbs.txt"), (w for w, kind in closed if kind == "ADP"))
    likely = _LIKELY.union(w for w, kind in closed if kind in ("CCONJ", "SCONJ"))
    return dict.fromkeys(likely, Delimiter.PROBABILISTIC) | dict.fromkeys(
        certain, Delimiter.DETERMINISTIC
    )


def _lines(name: str) -> list[str]:
    text = (resources.files("giaann_p2p.model") / "data" / name).read_text(encoding="utf-8")
    return [line for line in text.split("\n") if line and not line.startswith("#")]
