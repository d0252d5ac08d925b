"""A compute peer's options."""

import os
from typing import Annotated

from giaann_p2p.node.reading.prompt_options import PromptOptions
from giaann_p2p.units import nbytes
from peers.options import Options, told

_MOST_WORKERS = 64
_MOST_SLOTS = 256
_MOST_PROMPTS = 4096
_BESIDE = 2
"""Number of slots in addition to two for each worker, so that no worker is ever idle."""


class ComputeOptions(Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A compute peer's options."""

    summary = "Learn for a swarm until told to leave."

    join: Annotated[
        str,
        told(
            "The swarm's join link, as its founder printed it, or its name (giaann join).", "LINK"
        ),
    ]
    device: Annotated[
        str,
        told(
            "Torch device to compute on: auto (CUDA if available), cpu, cuda:0. Each worker "
            "process uses it separately.",
            "NAME",
        ),
    ] = "auto"
    workers: Annotated[
        int,
        told(
            "Processes that parse and learn, 60 MB each. 0 uses a thread of the peer itself, which "
            "then answers slowly while it learns; -1 starts one process per two cores.",
            "N",
            ge=-1,
            le=_MOST_WORKERS,
        ),
    ] = -1
    slots: Annotated[
        int,
        told(
            "Chunks to work on at a time, including those being pushed to their owners. 0 means "
            "two per worker, and two more.",
            "N",
            ge=0,
            le=_MOST_SLOTS,
        ),
    ] = 0

    prompts: Annotated[
        int,
        told(
            "Prompts to answer at a time; further clients are sent to another peer.",
            "N",
            ge=1,
            le=_MOST_PROMPTS,
        ),
    ] = PromptOptions().sessions
    cache: Annotated[
        str,
        told("Memory for the cache of rows that prompts have read, for example 256MiB.", "SIZE"),
    ] = "256MiB"
    device_memory: Annotated[
        str,
        told(
            "Memory for the states of all prompts, on the device that computes them, for example "
            "4GiB. Beyond it, prompts are sent to another peer.",
            "SIZE",
        ),
    ] = "1GiB"
    verify: Annotated[
        float,
        told(
            "Share of the rows read for prompts, chosen at random, to compare with another "
            "owner's. A peer that returns wrong rows is found after some reads, and avoided. 1 has "
            "every row confirmed by a majority of its owners before it is used, at two to three "
            "times the reads; 0 compares none.",
            "SHARE",
            ge=0,
            le=1,
        ),
    ] = 0.02

    def __post_init__(self) -> None:
        self.prompting(), self.watch  # raises UsageError for values that cannot be used

    def prompting(self) -> PromptOptions:
        """Return the options for answering prompts."""
        return PromptOptions(
            sessions=self.prompts,
            cache_bytes=nbytes(self.cache),
            mind_bytes=nbytes(self.device_memory),
        )

    @property
    def processes(self) -> int:
        """The number of processes that parse and learn."""
        return self.workers if self.workers >= 0 else max(1, (os.cpu_count() or 1) // 2)

    @property
    def chunks(self) -> int:
        """The number of chunks to work on at a time: the slots that the peer announces."""
        return self.slots or min(_MOST_SLOTS, 2 * max(1, self.processes) + _BESIDE)
