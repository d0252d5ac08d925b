"""`giaann compute`: the command. The daemon is imported late, because that takes seconds."""

import os

from peers.command import command
from peers.compute.options import ComputeOptions


def _start(options: ComputeOptions) -> None:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # otherwise importing numpy starts threads
    from giaann_p2p.node.training.learn_workers import learn_workers
    from peers.compute.daemon import installed, serve
    from peers.process import run

    # Fork the workers before any thread starts; they share the memory of everything loaded by now.
    here = installed()
    run(serve(options, learn_workers(options.processes), here), options)


compute = command(ComputeOptions, _start, "Learn for a swarm until told to leave.")
