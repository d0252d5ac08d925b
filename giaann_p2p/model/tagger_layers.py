"""The tagger's layers in whole numbers: the same bits on every machine, with numpy or torch.

Each operation is either a sum of whole numbers that no order of addition can round (see
`tagger_tables`), or one correctly rounded operation per element. So there must be no operation here
that fuses a multiplication with an addition, and no compiler that does.

What depends on a token alone, whatever its neighbours, is computed once for each type of token, and
cached (see `TokenTypes`). A first window is the sum of what three types contribute, so each type's
contributions are computed once per batch.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
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

Bools = npt.NDArray[np.bool_]
Array: TypeAlias = Any
"""An array of numpy, or a tensor of torch: both support the operations that are used here."""

_NORM_BITS = 17
"""The fractional bits of a number to be normalised."""
_FARTHEST = float(1 << 23)
"""The greatest magnitude of a number to be normalised, 64: more than ever occurs, and few enough
bits that 96 squares add up exactly."""
_TO_NORM = 0.5 ** (ACTIVATION_BITS + WEIGHT_BITS - _NORM_BITS)
"""A power of two: multiplied by it, weights and biases are no longer whole, but sums stay exact."""
_EPSILON = 1e-8 * float(1 << 2 * _NORM_BITS)
_GAP = np.zeros(4, bool)
"""Rows of zeros before, between and after sentences: as many as there are window layers, so that
no sentence's tags depend on the sentences beside it."""
_WINDOW = np.array([-1, 0, 1])
_HASH = NumpyOps().hash
_AT_ONCE = {"cpu": 512}
"""Tokens that are computed together, by type of device: on a CPU they stay in a core's cache."""
_MANY = 1 << 16
"""The same on other devices, which are faster with more tokens at a time."""


class TaggerLayers:
    """The layers on one device: they turn the types of sentences' tokens into tags."""

    def __init__(self, tables: TaggerTables, device: str | torch.device | None = "cpu") -> None:
        """Move the tables to a torch device; None computes with numpy."""
        self._xp: ModuleType = np if device is None else torch
        self._device = device
        self._embeddings = tables.embeddings
        self.width = len(tables.first.gain)
        self._first = self._layer(tables.first)
        self._windows = [self._layer(layer) for layer in tables.windows]
        self._weight, self._bias = self._on_device(tables.weight), self._on_device(tables.bias)
        self._at_once = _AT_ONCE.get(torch.device(device or "cpu").type, _MANY)

    def __repr__(self) -> str:
        return f"<TaggerLayers on {self._device or 'numpy'}>"

    def types(self, attributes: npt.NDArray[np.uint64]) -> Array:
        """Return activations of [n, ATTRIBUTES] distinct kinds of tokens, [n, width], as int32.

        Many kinds share a value of an attribute, so each distinct value is multiplied only once.
        """
        weights = self._first.weight.reshape(len(self._embeddings), self.width, -1)
        y = self._zeros(len(attributes), PIECES * self.width)
        for table, column, weight in zip(self._embeddings, attributes.T, weights, strict=True):
            values, places = np.unique(column, return_inverse=True)
            hashed = table.rows[_HASH(values, table.seed) % len(table.rows)].sum(axis=1)
            y += self._rows(self._product(self._on_device(hashed), weight), places)
        return self._whole(self._normed(y, self._first))

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
        """Return the score of each tag for each token, [n, tags]: whole numbers."""
        used, places = np.unique(types, return_inverse=True)
        x = self._zeros(1 + len(used), self.width)  # [1 + u, width], row 0 for gaps
        x[1:] = self._float(self._rows(table, used))
        weights = self._windows[0].weight.reshape(3, self.width, -1)
        products = [self._product(x, weight) for weight in weights]  # 3 x [1 + u, PIECES * width]
        found, done = [], 0
        for some in _blocks([length for length in lengths if length], self._at_once):
            inside = np.concatenate([_GAP, *(_with_gap(length) for length in some)])  # [rows]
            kinds = np.zeros(len(inside), np.int64)
            kinds[inside] = 1 + places[done : (done := done + sum(some))]
            first, *others = _needed(inside, len(self._windows))
            y = self._first_window(x, products, kinds, first)
            for layer, own in zip(self._windows[1:], others, strict=True):
                y = self._window(y, own, layer)
            found.append(self._product(y, self._weight) + self._bias)
        return self._xp.concatenate(found)

    def _first_window(self, x: Array, products: Sequence[Array], kinds: Ints, own: Ints) -> Array:
        """Return activations of some rows, [n, width], whose kinds are rows of `x`."""
        left, middle, right = (kinds[own + step] for step in _WINDOW)
        y = self._rows(products[0], left)  # [n, PIECES * width]
        y += self._rows(products[1], middle)
        y += self._rows(products[2], right)
        return self._rows(x, middle) + self._normed(y, self._windows[0])

    def _window(self, x: Array, own: Ints, layer: Layer) -> Array:
        """Return a layer's activations of some rows of `x`, [n, width]."""
        windows = self._rows(x, (own[:, None] + _WINDOW).ravel()).reshape(-1, 3 * self.width)
        y = self._product(windows, layer.weight)  # [n, PIECES * width]
        return windows[:, self.width : -self.width] + self._normed(y, layer)

    def _product(self, inputs: Array, weight: Array) -> Array:
        return inputs @ weight

    def _normed(self, y: Array, layer: Layer) -> Array:
        """Return a layer's activations of sums [n, PIECES * width]: whole numbers [n, width]."""
        xp, width = self._xp, self.width
        y += layer.bias
        q = xp.maximum(y[:, :width], y[:, width : 2 * width])
        for piece in range(2, PIECES):
            xp.maximum(q, y[:, piece * width : (piece + 1) * width], out=q)
        xp.round(q, out=q)
        xp.clip(q, -_FARTHEST, _FARTHEST, out=q)
        total = q.sum(1)
        mean = total / width
        variance = ((q * q).sum(1) - total * mean) / width + _EPSILON
        q -= mean[:, None]
        q /= xp.sqrt(variance)[:, None]
        q *= layer.gain
        q += layer.shift
        return xp.round(q, out=q)

    def _layer(self, layer: Layer) -> Layer:
        scaled = layer._replace(weight=layer.weight * _TO_NORM, bias=layer.bias * _TO_NORM)
        return Layer(*map(self._on_device, scaled))

    def _on_device(self, array: Array) -> Array:
        return array if self._device is None else torch.from_numpy(array).to(self._device)

    def _rows(self, array: Array, rows: Ints) -> Array:
        return array[rows] if self._device is None else array.index_select(0, self._on_device(rows))

    def _zeros(self, rows: int, columns: int) -> Array:
        if self._device is None:
            return np.zeros((rows, columns))
        return torch.zeros(rows, columns, dtype=torch.float64, device=self._device)

    def _whole(self, array: Array) -> Array:
        return array.astype(np.int32) if self._device is None else array.to(torch.int32)

    def _float(self, array: Array) -> Array:
        return array.astype(np.float64) if self._device is None else array.to(torch.float64)


def _blocks(lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """Group the lengths of sentences: up to `most` tokens in a group, or one longer sentence."""
    group, tokens = list[int](), 0
    for length in lengths:
        if group and tokens + length > most:
            yield group
            group, tokens = [], 0
        group.append(length)
        tokens += length
    yield group


def _with_gap(length: int) -> Bools:
    return np.concatenate([np.ones(length, bool), _GAP])


def _needed(inside: Bools, layers: int) -> list[Ints]:
    """Return which rows each layer must compute, as rows of what the preceding one computed.

    The last layer must compute all tokens, any other layer the rows that the next one reads.
    """
    wide = [inside]  # from the last layer to the first
    for _ in range(layers):
        wide.append(_and_neighbours(wide[-1]))
    return [np.flatnonzero(now[before]) for before, now in pairwise(reversed(wide))]


def _and_neighbours(rows: Bools) -> Bools:
    """Return these rows, and the ones before and after them."""
    wider = rows.copy()
    wider[1:] |= rows[:-1]
    wider[:-1] |= rows[1:]
    return wider
