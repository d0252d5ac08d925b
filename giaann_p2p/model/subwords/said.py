"""A token of an answer, as plain values."""

from typing import Annotated, NamedTuple

import msgspec

from giaann_p2p.model.manner import MOST_RIVALS
from giaann_p2p.model.rows import Name
from giaann_p2p.model.subwords.basis import Basis


class Rival(NamedTuple):
    """A token that was among the candidates, with its probability."""

    word: str
    """The token's name, with the space before it."""
    probability: float


class SubwordToken(NamedTuple):
    """A token of an answer, with its evidence, score and probability.

    It has the fields of a token of the profile `words`, and one more.
    """

    text: str
    """The string that the token appends to the text. Empty while a character is incomplete."""
    word: str
    """The token's name, with the space before it."""
    name: Name
    timing: Basis
    """The evidence for it."""
    score: float
    """The logarithm of its odds; only differences between candidates mean anything."""
    candidates: int
    """The number of candidates that the token was chosen from; 0 without any evidence."""
    probability: float
    """Its odds as a share of all candidates' odds; without evidence, its share of all tokens."""
    rivals: Annotated[tuple[Rival, ...], msgspec.Meta(max_length=MOST_RIVALS)] = ()
    """The best candidates, the best first, if they were asked for."""
