"""The tagger's layers in whole numbers: the same bits on every machine, with numpy or torch.

Each operation is either a sum of whole numbers that no order of addition can round (see
`tagger_tables`), or one correctly rounded operation an element. So there must be no operation here
that fuses a multiplication with an addition, and no compiler that does.

What depends on a token alone, whatever its neighbours, is computed once for each type of token, and
remembered (see `TokenTypes`).
"""

from collections.abc import Sequence
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from thinc.api import NumpyOps

from giaann_p2p.model.sequence import Ints
from giaann_p2p.model.tagger_tables import (
    ACTIVATION_BITS,
    PIECES,
    WEIGHT_BITS,
    Layer,
    TaggerTables,
)

Array: TypeAlias = Any
"""An array of numpy, or a tensor of torch: both know the operations that are used here."""

_NORM_BITS = 17
"""Bits behind the point of what is normalised."""
_FARTHEST = float(1 << 23)
"""The greatest magnitude of what is normalised, 64: more than ever occurs, and few enough bits that
96 squares add up exactly."""
_TO_NORM = float(1 << ACTIVATION_BITS + WEIGHT_BITS - _NORM_BITS)
_EPSILON = 1e-8 * float(1 << 2 * _NORM_BITS)
_GAP = 4
"""Rows of zeros before, between and behind sentences: as many as there are window layers, so that
no sentence's tags depend on the sentences beside it."""
_HASH = NumpyOps().hash


class TaggerLayers:
    """The layers on one device: of the types of sentences' tokens they make tags."""

    def __init__(self, tables: TaggerTables, device: str | torch.device | None = "cpu") -> None:
        """Move the tables to a torch device; None computes with numpy."""
        self._xp: ModuleType = np if device is None else torch
        self._device = device
        self._embeddings = tables.embeddings
        self._first = self._layer(tables.first)
        self._windows = [self._layer(layer) for layer in tables.windows]
        self._weight, self._bias = self._on_device(tables.weight), self._on_device(tables.bias)
        self.width = len(tables.first.gain)

    def __repr__(self) -> str:
        return f"<TaggerLayers on {self._device or 'numpy'}>"

    def types(self, attributes: npt.NDArray[np.uint64]) -> Array:
        """Return activations of [n, ATTRIBUTES] distinct kinds of tokens, [n, width], as int32."""
        columns = [np.ascontiguousarray(column) for column in attributes.T]
        hashed = [
            table.rows[_HASH(column, table.seed) % len(table.rows)].sum(axis=1)
            for table, column in zip(self._embeddings, columns, strict=True)
        ]
        return self._whole(
            self._normed(self._on_device(np.concatenate(hashed, axis=1)), self._first)
        )

    def no_types(self, capacity: int) -> Array:
        """Return an empty table for the activations of types."""
        if self._device is None:
            return np.zeros((capacity, self.width), np.int32)
        return torch.zeros(capacity, self.width, dtype=torch.int32, device=self._device)

    def tags(self, table: Array, types: Ints, lengths: Sequence[int]) -> Ints:
        """Return the tag of each token of some sentences, whose `types` are rows of a table."""
        if not len(types):
            return types
        found = self.logits(table, types, lengths).argmax(1)
        tags: Ints = found if self._device is None else found.cpu().numpy()
        return tags

    def logits(self, table: Array, types: Ints, lengths: Sequence[int]) -> Array:
        """Return what speaks for each tag of each token, [n, tags]: whole numbers."""
        gaps = _GAP * (1 + np.repeat(np.arange(len(lengths)), lengths))
        places = self._on_device(np.arange(len(types)) + gaps)
        rows = len(types) + _GAP * (len(lengths) + 1)
        x, window = self._zeros(rows, self.width), self._zeros(rows, 3 * self.width)
        x[places] = self._float(table[self._on_device(types)])
        for layer in self._windows:
            window[1:, : self.width] = x[:-1]
            window[:, self.width : -self.width] = x
            window[:-1, -self.width :] = x[1:]
            x += self._normed(window, layer)
        return self._product(x[places], self._weight) + self._bias

    def _product(self, inputs: Array, weight: Array) -> Array:
        return inputs @ weight

    def _normed(self, inputs: Array, layer: Layer) -> Array:
        """Return a layer's activations: whole numbers."""
        xp, width = self._xp, self.width
        y = self._product(inputs, layer.weight)
        y += layer.bias
        q = xp.maximum(y[:, :width], y[:, width : 2 * width])
        for piece in range(2, PIECES):
            xp.maximum(q, y[:, piece * width : (piece + 1) * width], out=q)
        q /= _TO_NORM
        xp.round(q, out=q)
        xp.clip(q, -_FARTHEST, _FARTHEST, out=q)
        total = q.sum(1)
        mean = total / width
        variance = (xp.einsum("ij,ij->i", q, q) - total * mean) / width + _EPSILON
        q -= mean[:, None]
        q /= xp.sqrt(variance)[:, None]
        q *= layer.gain
        q += layer.shift
        return xp.round(q, out=q)

    def _layer(self, layer: Layer) -> Layer:
        return Layer(*map(self._on_device, layer))

    def _on_device(self, array: Array) -> Array:
        return array if self._device is None else torch.from_numpy(array).to(self._device)

    def _zeros(self, rows: int, columns: int) -> Array:
        if self._device is None:
            return np.zeros((rows, columns))
        return torch.zeros(rows, columns, dtype=torch.float64, device=self._device)

    def _whole(self, array: Array) -> Array:
        return array.astype(np.int32) if self._device is None else array.to(torch.int32)

    def _float(self, array: Array) -> Array:
        return array.astype(np.float64) if self._device is None else array.to(torch.float64)
