"""The command `giaann storage`. It imports the daemon late, because that takes a second."""

from peers.command import command
from peers.storage.options import StorageOptions


def _start(options: StorageOptions) -> None:
    from peers.storage.daemon import start

    start(options)


storage = command(StorageOptions, _start)
