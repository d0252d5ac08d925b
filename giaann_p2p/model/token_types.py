"""Caches, by type of token, what the tagger computes from a token alone."""

from typing import Any

import numpy as np
import numpy.typing as npt
from spacy.tokens import Doc

from giaann_p2p.model.sequence import Ints
from giaann_p2p.model.tagger_layers import TaggerLayers
from giaann_p2p.model.tagger_tables import ATTRIBUTES

MOST = 1 << 16
"""The most types that are remembered, at some 600 bytes each; then all are forgotten."""
_COLUMNS: list[int | str] = ["ORTH", "IDX", *ATTRIBUTES]
_ORTH, _NORM, _SPACE_AFTER = (_COLUMNS.index(name) for name in ("ORTH", "NORM", "SPACY"))
"""The columns that distinguish types: all other attributes follow from a token's text."""

Tokens = npt.NDArray[np.uint64]
"""Shape [n, 8]: of each token the hash of its text, its offset, and what the tagger reads."""


class TokenTypes:
    """Numbers types, and keeps their activations in one table."""

    def __init__(self, layers: TaggerLayers, most: int = MOST) -> None:
        self._layers, self._most = layers, most
        self._numbers: dict[tuple[int, ...], int] = {}
        self._table: Any = layers.no_types(most)

    def __repr__(self) -> str:
        return f"<TokenTypes: {len(self._numbers):,} known>"

    def of(self, tokens: Tokens) -> tuple[Any, Ints]:
        """Return the table of all types' activations, and each token's row in it.

        The next call invalidates both.
        """
        columns = (tokens[:, at].tolist() for at in (_ORTH, _NORM, _SPACE_AFTER))
        types = list(zip(*columns, strict=True))
        new = {kind: at for at, kind in enumerate(types) if kind not in self._numbers}
        if len(self._numbers) + len(new) > self._most and self._numbers:
            self._numbers.clear()
            return self.of(tokens)
        if new:
            self._add(tokens[list(new.values())], list(new))
        numbers = self._numbers
        return self._table, np.array([numbers[kind] for kind in types], np.int64)

    def _add(self, tokens: Tokens, types: list[tuple[int, ...]]) -> None:
        first = len(self._numbers)
        needed = first + len(types)
        if needed > len(self._table):  # more at once than are remembered
            self._table = self._layers.no_types(needed)
        attributes = tokens[:, len(_COLUMNS) - len(ATTRIBUTES) :]
        self._table[first:needed] = self._layers.types(attributes)
        self._numbers.update(zip(types, range(first, needed), strict=True))


def tokens_of(docs: list[Doc]) -> Tokens:
    """Return the tokens of several sentences."""
    return np.concatenate([doc.to_array(_COLUMNS).reshape(-1, len(_COLUMNS)) for doc in docs])
