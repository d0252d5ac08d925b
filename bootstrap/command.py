"""`giaann bootstrap`: the command; what it starts takes a second to import."""

from bootstrap.options import BootstrapOptions
from peers.command import command


def _start(options: BootstrapOptions) -> None:
    from bootstrap.daemon import serve
    from peers.process import run

    run(serve(options), options)


bootstrap = command(
    BootstrapOptions, _start, "Found a swarm, print its join link, and introduce its peers."
)
