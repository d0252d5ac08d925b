"""Policies that choose the next chunk to learn. The order has no effect on the model.

Both policies draw chunks pseudo-randomly, by a hash of the job's id and the number of the draw.
`AtRandom` takes the first draw. `LeastOverlap` draws a few and takes the one that shares the fewest
columns with the chunks being learned, so fewer updates wait for one another at the owners.
`python -m tests.benchmarks.policies` measures the gain. Random order already achieves most of it,
because chunks that are close in a text are about the same things.
"""

import hashlib
from collections.abc import Collection

import numpy as np
from pyroaring import BitMap

from giaann_p2p.swarm.training.overlap import Common, Sketch

_DRAWS = 16
"""Number of chunks that `LeastOverlap` draws for one choice. Drawing four times as many finds
hardly less overlap."""


class AtRandom:
    """Takes waiting chunks in pseudo-random order."""

    def __init__(self, job: bytes) -> None:
        self._job = job
        self._draws = 0

    def pick(self, waiting: BitMap, busy: Collection[int]) -> int:
        """Return one of the waiting chunks, drawn pseudo-randomly."""
        return self._draw(waiting)

    def _draw(self, waiting: BitMap) -> int:
        self._draws += 1
        seed = self._job + self._draws.to_bytes(8, "little")
        number = int.from_bytes(hashlib.blake2b(seed, digest_size=8).digest(), "little")
        return waiting[number % len(waiting)]


class LeastOverlap(AtRandom):
    """Draws a few waiting chunks, and takes the one that overlaps least with the leased chunks."""

    def __init__(self, job: bytes) -> None:
        super().__init__(job)
        self._sketches: dict[int, Sketch] = {}
        self._common = Common()

    def note(self, chunk: int, sketch: Sketch) -> None:
        """Record the sketch of a chunk's columns; a chunk can be picked without one, too."""
        self._sketches[chunk] = sketch
        self._common.add(sketch)

    def forget(self, chunk: int) -> None:
        """Forget the sketch of a committed chunk."""
        self._sketches.pop(chunk, None)

    def pick(self, waiting: BitMap, busy: Collection[int]) -> int:
        """Return a waiting chunk that overlaps little with the `busy` ones.

        Without sketches to compare, the first chunk that was drawn is returned.
        """
        drawn = list(dict.fromkeys(self._draw(waiting) for _ in range(_DRAWS)))
        known = [chunk for chunk in drawn if chunk in self._sketches]
        others = [self._sketches[chunk] for chunk in busy if chunk in self._sketches]
        if not known or not others:
            return drawn[0]
        beyond = self._common.beyond([self._sketches[chunk] for chunk in known], others)
        return known[int(np.argmin(beyond))]
