"""`giaann storage`: the command. The daemon is imported late, because that takes a second."""

from giaann_p2p.machine import check_capacity, memory
from peers.command import command
from peers.storage.options import StorageOptions


def _start(options: StorageOptions) -> None:
    if not options.force:
        check_capacity(options.capacity_bytes, memory())

    from peers.process import run
    from peers.storage.daemon import serve

    run(serve(options), options)


storage = command(StorageOptions, _start, "Hold columns for a swarm until told to leave.")
