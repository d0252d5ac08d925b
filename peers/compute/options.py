"""What can be set of a compute peer."""

import os
from typing import Annotated

from giaann_p2p.node.prompt_options import PromptOptions
from giaann_p2p.units import nbytes
from peers.options import Options, told

_MOST_WORKERS = 64
_MOST_SLOTS = 256
_MOST_PROMPTS = 4096
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
            "Processes that parse and learn, at 60 MB each; 0: a thread of the peer itself, which "
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

    prompts: Annotated[
        int,
        told(
            "Prompts to answer at a time; who asks beyond that is sent to another peer.",
            "N",
            ge=1,
            le=_MOST_PROMPTS,
        ),
    ] = PromptOptions().sessions
    cache: Annotated[
        str,
        told("Memory for rows that prompts have asked for, as 256MiB.", "SIZE"),
    ] = "256MiB"
    verify: Annotated[
        float,
        told(
            "Share of the rows that prompts read which are compared with what another owner says, "
            "drawn by chance; a peer that tells wrong ones is found after some reads, and passed "
            "over. 1: every row, before it is used, by a majority of its owners, at two to three "
            "times the reads; 0: none.",
            "SHARE",
            ge=0,
            le=1,
        ),
    ] = 0.02

    def __post_init__(self) -> None:
        self.prompting()  # names what cannot be

    def prompting(self) -> PromptOptions:
        """Return how prompts are answered."""
        return PromptOptions(sessions=self.prompts, cache_bytes=nbytes(self.cache))

    @property
    def processes(self) -> int:
        """How many processes parse."""
        return self.workers if self.workers >= 0 else max(1, (os.cpu_count() or 1) // 2)

    @property
    def chunks(self) -> int:
        """How many chunks it works on at a time."""
        return self.slots or min(_MOST_SLOTS, 2 * max(1, self.processes) + _BESIDE)
