"""The command `giaann bootstrap`. It imports the daemon late, because that takes a second."""

from bootstrap.options import BootstrapOptions
from peers.command import command


def _start(options: BootstrapOptions) -> None:
    from bootstrap.daemon import start

    start(options)


bootstrap = command(BootstrapOptions, _start)
