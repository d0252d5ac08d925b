"""The command `giaann compute`. It imports the daemon late, because that takes seconds."""

import os

from peers.command import command
from peers.compute.options import ComputeOptions


def _start(options: ComputeOptions) -> None:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # otherwise importing numpy starts threads
    from peers.compute.daemon import start

    start(options)


compute = command(ComputeOptions, _start)
