"""Which of the chunks that wait is learned next. Learning is free of order, so any will do.

Both policies draw by hash, from the job's id and the number of the draw. `LeastOverlap` draws a few
and takes the one whose columns those being learned touch least: fewer updates wait for one another
at the owners. What that saves, `python -m tests.benchmarks.policies` shows; most of it, chance does
already, for neighbours in a text are about the same things.
"""

import hashlib
from collections.abc import Collection

import numpy as np
from pyroaring import BitMap

from giaann_p2p.swarm.overlap import Common, Sketch

_DRAWS = 16
"""Four times as many find hardly less overlap."""


class AtRandom:
    """Any."""

    def __init__(self, job: bytes) -> None:
        self._job = job
        self._draws = 0

    def pick(self, waiting: BitMap, busy: Collection[int]) -> int:
        """Return one of those that wait."""
        return self._draw(waiting)

    def _draw(self, waiting: BitMap) -> int:
        self._draws += 1
        seed = self._job + self._draws.to_bytes(8, "little")
        number = int.from_bytes(hashlib.blake2b(seed, digest_size=8).digest(), "little")
        return waiting[number % len(waiting)]


class LeastOverlap(AtRandom):
    """The one of a few that shares least with those that are being learned."""

    def __init__(self, job: bytes) -> None:
        super().__init__(job)
        self._sketches: dict[int, Sketch] = {}
        self._common = Common()

    def note(self, chunk: int, sketch: Sketch) -> None:
        """Take in what a chunk touches, before it waits or later."""
        self._sketches[chunk] = sketch
        self._common.add(sketch)

    def forget(self, chunk: int) -> None:
        """Let a chunk's sketch go: it is committed."""
        self._sketches.pop(chunk, None)

    def pick(self, waiting: BitMap, busy: Collection[int]) -> int:
        """Return one of those that wait; a chunk without a sketch only if none drawn has one."""
        drawn = list(dict.fromkeys(self._draw(waiting) for _ in range(_DRAWS)))
        known = [chunk for chunk in drawn if chunk in self._sketches]
        others = [self._sketches[chunk] for chunk in busy if chunk in self._sketches]
        if not known or not others:
            return drawn[0]
        beyond = self._common.beyond([self._sketches[chunk] for chunk in known], others)
        return known[int(np.argmin(beyond))]
