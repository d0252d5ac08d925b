"""One flood as a process of its own: NAME HOST PORT, until it is ended."""

import asyncio
import contextlib
import sys

from tests.benchmarks.p2pd_flood.floods import FLOODS

if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(FLOODS[sys.argv[1]](sys.argv[2], int(sys.argv[3])))
