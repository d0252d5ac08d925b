"""`giaann bootstrap`: the command. The daemon is imported late, because that takes a second."""

from pathlib import Path

from bootstrap.options import BootstrapOptions
from giaann_p2p.errors import UsageError
from peers.command import command


def _start(options: BootstrapOptions) -> None:
    check_purpose(options)
    from bootstrap.daemon import serve
    from peers.process import run

    run(serve(options), options)


def check_purpose(options: BootstrapOptions) -> None:
    """Raise UsageError if neither an option nor the folder names a swarm to serve."""
    founded = options.data_dir and (Path(options.data_dir) / "manifest.json").exists()
    if not (options.new or options.join or founded):
        before = f"{options.data_dir} has founded no swarm yet: " if options.data_dir else ""
        raise UsageError(f"{before}give --new NAME to found a swarm, or --join LINK to serve one")


bootstrap = command(
    BootstrapOptions, _start, "Found a swarm, print its join link, and introduce its peers."
)
