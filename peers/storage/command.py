"""`giaann storage`: the command; what it starts takes a second to import."""

from peers.command import command
from peers.storage.options import StorageOptions


def _start(options: StorageOptions) -> None:
    from peers.process import run
    from peers.storage.daemon import serve

    run(serve(options), options)


storage = command(StorageOptions, _start, "Hold columns for a swarm, until it is left.")
