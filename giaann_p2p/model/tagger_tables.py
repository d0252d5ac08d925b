"""The tables of the tagger in whole numbers: what spaCy learned, rounded once.

Activations are whole numbers of 2^-18, weights of 2^-20. So a product of them is a sum of whole
numbers, and `checked` proves that none can reach 2^53, below which float64 adds without rounding:
every order of addition gives the same bits, and so does every library, batch and processor.
"""

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from spacy.language import Language

from giaann_p2p.errors import PipelineError

Floats = npt.NDArray[np.float64]
"""Whole numbers, unless stated otherwise."""

ACTIVATION_BITS, WEIGHT_BITS = 18, 20
"""Enough that no tag of 900,000 tokens of the King James Bible differs from spaCy's; with 16 and 17
bits five did."""
UNIT = float(1 << ACTIVATION_BITS)
"""The number that stands for an activation of 1."""
_WEIGHT_UNIT = float(1 << WEIGHT_BITS)
_PRODUCT_UNIT = UNIT * _WEIGHT_UNIT
PIECES = 3
"""The number of linear functions of which each activation is the greatest."""
ATTRIBUTES = ("NORM", "PREFIX", "SUFFIX", "SHAPE", "SPACY", "IS_SPACE")
"""The attributes of a token that its activations depend on, besides its neighbours."""
_EXACT = float(1 << 53)
_RULES = b"giaann tagger 1"
"""The version of the rules in `tagger_layers`: other rounding makes another pipeline."""


class Embedding(NamedTuple):
    """The table of one attribute; a value of it is the sum of four hashed rows."""

    rows: Floats
    """Shape [rows, width]."""
    seed: int


class Layer(NamedTuple):
    """A normalised maxout layer: it turns [n, inputs] into [n, width]."""

    weight: Floats
    """Shape [inputs, PIECES * width]: the first pieces of all activations, then the second..."""
    bias: Floats
    """Shape [PIECES * width]."""
    gain: Floats
    """Shape [width], not whole: normalised activations are multiplied by it."""
    shift: Floats
    """Shape [width], not whole: added to the products."""


class TaggerTables(NamedTuple):
    """All that the tagger computes with."""

    embeddings: list[Embedding]
    """By attribute, in the order of ATTRIBUTES."""
    first: Layer
    """From a token's embeddings to its activations."""
    windows: list[Layer]
    """From a token's and both neighbours' activations to what is added to the token's."""
    weight: Floats
    """Shape [width, tags]."""
    bias: Floats
    """Shape [tags]."""
    tags: tuple[str, ...]

    @property
    def digest(self) -> str:
        """The digest of all the numbers, the rounding rules and the tags' names: 32 hex digits."""
        whole = hashlib.blake2b(_RULES, digest_size=16)
        whole.update("\0".join((*ATTRIBUTES, *self.tags)).encode())
        for array in self._arrays():
            whole.update(np.array(array.shape, "<i8").tobytes() + array.astype("<f8").tobytes())
        return whole.hexdigest()

    def _arrays(self) -> Iterator[Floats]:
        for rows, seed in self.embeddings:
            yield from (rows, np.array(seed, np.float64))
        for layer in (self.first, *self.windows):
            yield from layer
        yield from (self.weight, self.bias)


def tables_of(nlp: Language) -> TaggerTables:
    """Round a pipeline's tagger; PipelineError if it is not built as the layers here expect."""
    tok2vec, tagger = nlp.get_pipe("tok2vec").model, nlp.get_pipe("tagger").model  # type: ignore[attr-defined]
    embeddings = [
        Embedding(_whole(node.get_param("E"), UNIT), node.attrs["seed"])
        for node in _nodes(tok2vec, "hashembed")
    ]
    normed = zip(_nodes(tok2vec, "maxout"), _nodes(tok2vec, "layernorm"), strict=True)
    first, *windows = [_layer(maxout, norm) for maxout, norm in normed]
    (softmax,) = _nodes(tagger, "softmax")
    tables = TaggerTables(
        embeddings,
        first,
        windows,
        np.ascontiguousarray(_whole(softmax.get_param("W"), _WEIGHT_UNIT).T),
        _whole(softmax.get_param("b"), _PRODUCT_UNIT),
        tuple(nlp.get_pipe("tagger").labels),  # type: ignore[attr-defined]
    )
    return checked(tables)


def checked(tables: TaggerTables) -> TaggerTables:
    """Return the tables; PipelineError if a sum could ever need rounding.

    Of a normalised layer of n activations, none is further than sqrt(n - 1) from their mean.
    """
    hashed = [4 * np.abs(rows).max(axis=0) for rows, _ in tables.embeddings]
    sums = [_most(tables.first.weight, tables.first.bias, np.concatenate(hashed))]
    most = _most_normed(tables.first)
    for layer in tables.windows:
        sums.append(_most(layer.weight, layer.bias, np.tile(most, 3)))
        most = most + _most_normed(layer)
    sums.append(_most(tables.weight, tables.bias, most))
    if max(sums) >= _EXACT:
        raise PipelineError("the weights of this English pipeline are too large for exact sums")
    return tables


def _most(weight: Floats, bias: Floats, inputs: Floats) -> float:
    """Return the largest sum that inputs of at most these magnitudes can yield."""
    return float((np.abs(weight) * inputs[:, None]).sum(axis=0).max() + np.abs(bias).max())


def _most_normed(layer: Layer) -> Floats:
    farthest = np.sqrt(len(layer.gain) - 1)
    found: Floats = np.rint(farthest * np.abs(layer.gain) + np.abs(layer.shift)) + 1
    return found


def _layer(maxout: Any, norm: Any) -> Layer:  # noqa: ANN401  (thinc's models)
    outward = maxout.get_param("W").swapaxes(0, 1)  # [pieces, width, inputs]
    pieces, width, inputs = outward.shape
    if pieces != PIECES:
        raise PipelineError(f"the English pipeline has {pieces} pieces a maxout; expected {PIECES}")
    return Layer(
        np.ascontiguousarray(_whole(outward.reshape(pieces * width, inputs), _WEIGHT_UNIT).T),
        _whole(maxout.get_param("b").T.ravel(), _PRODUCT_UNIT),
        norm.get_param("G").astype(np.float64) * UNIT,
        norm.get_param("b").astype(np.float64) * UNIT,
    )


def _nodes(model: Any, name: str) -> list[Any]:  # noqa: ANN401  (thinc's models)
    return [node for node in model.walk() if node.name == name]


def _whole(array: npt.NDArray[np.float32], unit: float) -> Floats:
    found: Floats = np.rint(array.astype(np.float64) * unit)
    return found
