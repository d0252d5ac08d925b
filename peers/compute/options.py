"""What can be set of a compute peer."""

import os
from typing import Annotated

from peers.options import Options, told

_MOST_WORKERS = 64
_MOST_SLOTS = 256
_BESIDE = 2
"""Chunks that are pushed, or wait, beside those that are being parsed: so nobody ever waits."""


class ComputeOptions(Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a compute peer can be told."""

    join: Annotated[str, told("The swarm's join link, as its founder printed it.", "LINK")]
    device: Annotated[
        str,
        told(
            "Torch device to compute on: auto (CUDA where there is one), cpu, cuda:0. Learning is "
            "mostly parsing, which is the CPU's work.",
            "NAME",
        ),
    ] = "auto"
    workers: Annotated[
        int,
        told(
            "Processes that parse and learn, at 120 MB each; 0: a thread of the peer itself, which "
            "is then slow to answer while it learns; -1: one for two cores.",
            "N",
            ge=-1,
            le=_MOST_WORKERS,
        ),
    ] = -1
    slots: Annotated[
        int,
        told(
            "Chunks to work on at a time, those on their way to their owners among them; 0: two "
            "for each worker, and two more.",
            "N",
            ge=0,
            le=_MOST_SLOTS,
        ),
    ] = 0

    @property
    def processes(self) -> int:
        """How many processes parse."""
        return self.workers if self.workers >= 0 else max(1, (os.cpu_count() or 1) // 2)

    @property
    def chunks(self) -> int:
        """How many chunks it works on at a time."""
        return self.slots or min(_MOST_SLOTS, 2 * max(1, self.processes) + _BESIDE)
