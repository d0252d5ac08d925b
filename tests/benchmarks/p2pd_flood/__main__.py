"""Floods of all that p2pd answers to a stranger, one after the other.

A peer on loopback is flooded by a process of its own, while a member calls it twenty times a
second. Without --seconds each flood takes a minute; then half a minute passes before what stays of
it is read. With --before p2pd runs as it did without its defences.
"""

import argparse

import uvloop

from tests.benchmarks.p2pd_flood.floods import FLOODS
from tests.benchmarks.p2pd_flood.stage import HEAD, flooded


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.p2pd_flood")
    parser.add_argument("floods", nargs="*", help=f"some of {', '.join(FLOODS)}; all unless named")
    parser.add_argument("--seconds", type=float, default=60.0, help="that each flood takes")
    parser.add_argument("--before", action="store_true", help="without the defences")
    given = parser.parse_args()
    if strange := set(given.floods) - set(FLOODS):
        parser.error(f"there is no flood {min(strange)!r}")
    print(HEAD)
    for flood in given.floods or FLOODS:
        outcome = uvloop.run(flooded(flood, given.seconds, defended=not given.before))
        print(outcome.line(), flush=True)


if __name__ == "__main__":
    main()
