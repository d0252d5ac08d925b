"""Sequences of tokens: parsed texts as arrays, many in one structure.

Position i of the batch is one token. Its neuron is (home[i], token[i]), or the prime neuron of
home[i] if it is the concept itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.sequence import Ints
from giaann_p2p.model.subwords.columns import columns, concepts, delimiters
from giaann_p2p.model.subwords.tokens import Token


@dataclass(frozen=True, eq=False)
class TokenSequences:
    """A batch of n sequences with N tokens in total."""

    starts: Ints
    """Shape [n + 1]: where each sequence starts, and the end of the last."""
    token: Ints
    """Shape [N]: each token's number."""
    home: Ints
    """Shape [N]: the number of the concept token of each token's column."""
    column: Ints
    """Shape [N]: the ordinal of each token's column within its sequence."""
    named_at: Ints
    """Shape [N]: the position of that concept, counted from the start of its sequence."""
    delimiter: npt.NDArray[np.uint8]
    """Shape [N]: each token's `Delimiter`."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __iter__(self) -> Iterator["TokenSequences"]:
        """Iterate over the sequences, each as a batch of one."""
        return (self[i : i + 1] for i in range(len(self)))

    def __getitem__(self, part: slice) -> "TokenSequences":
        """Return some consecutive sequences."""
        first, last, step = part.indices(len(self))
        if step != 1:
            raise ValueError("a batch of sequences can be sliced only with step 1")
        last = max(first, last)
        begin, end = self.starts[first], self.starts[last]
        parts: dict[str, Any] = {name: getattr(self, name)[begin:end] for name in _TOKEN_FIELDS}
        return TokenSequences(starts=self.starts[first : last + 1] - begin, **parts)

    @property
    def place(self) -> Ints:
        """The position of each token in its sequence, of shape [N]."""
        return np.arange(len(self.token)) - np.repeat(self.starts[:-1], np.diff(self.starts))

    @property
    def prime(self) -> npt.NDArray[np.bool_]:
        """Whether each token is its column's concept, of shape [N]."""
        found: npt.NDArray[np.bool_] = self.named_at == self.place
        return found


_TOKEN_FIELDS = tuple(one.name for one in fields(TokenSequences) if one.name != "starts")


class TokenSequenceBuilder:
    """Collects texts, one by one, into a batch."""

    def __init__(self) -> None:
        self._starts = [0]
        self._rows: list[tuple[int, int, int, int, int]] = []

    def add(self, tokens: Sequence[Token]) -> bool:
        """Add a text; if it has no noun, return False and add nothing."""
        nouns = concepts(tokens)
        if not nouns:
            return False
        kinds = delimiters(tokens, nouns)
        for token, column, kind in zip(tokens, columns(nouns, kinds), kinds, strict=True):
            at = nouns[column]
            self._rows.append((token.number, tokens[at].number, column, at, kind))
        self._starts.append(len(self._rows))
        return True

    def build(self) -> TokenSequences:
        """Return the batch of all added texts."""
        table = np.array(self._rows, np.int64).reshape(-1, 5)
        token, home, column, named_at, delimiter = np.ascontiguousarray(table.T)
        starts = np.array(self._starts, np.int64)
        return TokenSequences(starts, token, home, column, named_at, delimiter.astype(np.uint8))
