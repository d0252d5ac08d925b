"""Chunks of made-up text, and of what they come to the rows of about a hundred connections."""

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from giaann_p2p.model.delta import Delta, total
from giaann_p2p.model.learn import learn
from giaann_p2p.model.rows import Neuron
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.store.codec.parcel import encode
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.seal import Tree, made
from tests.benchmarks.zipf import Zipf

_SHORTEST, _LONGEST = 80, 125
"""Connections of a row that is read; they come to a hundred, about."""
_SEED = 1


@dataclass(frozen=True)
class Learned:
    """See the module."""

    deltas: list[Delta]
    parcels: list[bytes]
    """The deltas as they are pushed."""
    trees: list[Tree]
    """Their digests."""

    @property
    def increments(self) -> int:
        """How many the chunks have together."""
        return sum(delta.connections for delta in self.deltas)

    @property
    def size(self) -> int:
        """Bytes of all parcels."""
        return sum(map(len, self.parcels))

    @cached_property
    def lengths(self) -> dict[Neuron, int]:
        """The rows to be read, and how many connections each has."""
        whole = total(self.deltas)
        at = np.flatnonzero((whole.lengths >= _SHORTEST) & (whole.lengths <= _LONGEST))
        named = zip(whole.concept[at].tolist(), whole.feature[at].tolist(), strict=True)
        return dict(zip([Neuron(*one) for one in named], whole.lengths[at].tolist(), strict=True))


def learned(chunks: int) -> Learned:
    """Learn some chunks."""
    spec = ModelSpec()
    texts = itertools.islice(Zipf().chunks(spec, _SEED), chunks)
    deltas = [learn(sequences, spec) for sequences in texts]
    layout = Layout()
    trees = [made(delta, layout) for delta in deltas]
    return Learned(deltas, [encode(delta) for delta in deltas], trees)
