"""`giaann compute`: the command; what it starts takes seconds to import."""

import os

from peers.command import command
from peers.compute.options import ComputeOptions


def _start(options: ComputeOptions) -> None:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # or numpy starts threads when imported
    from giaann_p2p.node.hands import hands
    from peers.compute.daemon import installed, serve
    from peers.process import run

    # Processes are forked before there are threads, and share all that is loaded by then.
    here = installed()
    run(serve(options, hands(options.processes), here), options)


compute = command(ComputeOptions, _start, "Learn for a swarm, until it is left.")
