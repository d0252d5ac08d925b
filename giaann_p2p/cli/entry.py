"""The entry point of the command `giaann`, which imports the command line.

Importing that takes tenths of a second. Ctrl-C meanwhile ends the command as it does later.
"""

import sys

from giaann_p2p.exit_codes import INTERRUPTED


def main() -> None:
    """Run the command line."""
    try:
        from giaann_p2p.cli.main import main as command
    except KeyboardInterrupt:
        if sys.stderr is not None:
            sys.stderr.write("giaann: interrupted\n")
        sys.exit(INTERRUPTED)
    command()
