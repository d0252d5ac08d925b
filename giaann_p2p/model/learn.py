"""Learning: the dense subnetwork of each sequence, as one tensor expression on any torch device.

For positions a < b of a sequence, d = b - a tokens and c columns apart, 10 / (d + 1) is added to
the connection neuron(a) -> neuron(b), branch(b), in the feature segment of distance d and, if they
are near enough, in the column segment of distance c. All values are integers: every device yields
the same bytes, and nothing depends on what was learned before.
"""

from collections.abc import Iterator

import numpy as np
import torch

from giaann_p2p.model.delta import EMPTY, ConnectionKey, Delta, total, unique_neurons
from giaann_p2p.model.sequence import Sequences
from giaann_p2p.model.spec import ModelSpec, increment

_MOST_PAIRS = 1 << 20
"""The most pairs of positions in one tensor, n x L x L, at some 75 bytes each: a bound on temporary
memory. A chunk of ordinary sentences stays below it, and so does one sentence of 1,000 tokens, the
longest of the largest model."""


def learn(batch: Sequences, spec: ModelSpec, device: str | torch.device = "cpu") -> Delta:
    """Return the delta that the batch adds to a brain."""
    return total([_dense(part, spec, device) for part in _parts(batch)])


def _parts(batch: Sequences) -> Iterator[Sequences]:
    """Split a batch where there would be too many pairs; a single sequence is never split."""
    first = longest = 0
    for i, length in enumerate(np.diff(batch.starts).tolist()):
        longest = max(longest, length)
        if i > first and (i + 1 - first) * longest**2 > _MOST_PAIRS:
            yield batch[first:i]
            first, longest = i, length
    yield batch[first:]


def _dense(batch: Sequences, spec: ModelSpec, device: str | torch.device) -> Delta:
    """Return the delta of a batch, computed from all its pairs at once."""
    if not len(batch.concept):
        return EMPTY
    concept, feature, slot = unique_neurons(batch.concept, batch.feature)
    key = ConnectionKey.for_sizes(len(concept), spec.branches, spec.segments)

    def on_device(array: np.ndarray[tuple[int], np.dtype[np.int64]]) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(device)

    starts, neuron = on_device(batch.starts), on_device(slot)
    column, branch = on_device(batch.column), on_device(batch.branch)

    longest = int(np.diff(batch.starts).max())
    units = torch.tensor([0, *map(increment, range(1, longest))], device=device)  # [L]

    place = torch.arange(longest, device=device)  # [L]
    inside = place < starts.diff()[:, None]  # [n, L] sequence n has such a position
    earlier = place[:, None] < place  # [L, L] a < b
    n, a, b = (earlier & inside[:, None, :]).nonzero(as_tuple=True)  # [P] each: every pair once

    d = b - a
    a, b = starts[n] + a, starts[n] + b  # [P] positions in the batch
    c = column[b] - column[a]
    near = c < spec.column_segments
    feature_segment = spec.segments - d.clamp(max=spec.feature_segments)  # [P]
    column_segment = (spec.column_segments - 1 - c)[near]  # [Q]

    source, target, branch = neuron[a], neuron[b], branch[b]
    packed = torch.cat(
        [
            key.pack(source, target, branch, feature_segment),
            key.pack(source[near], target[near], branch[near], column_segment),
        ]
    )  # [P + Q]
    packed, index = torch.unique(packed, return_inverse=True)  # sorted
    strength = torch.zeros_like(packed).index_add_(0, index, torch.cat([units[d], units[d[near]]]))

    count = np.bincount(slot, minlength=len(concept)).astype(np.int64)
    return key.delta(
        concept, feature, count, packed.cpu().numpy(), strength.cpu().numpy(), batch.names
    )
