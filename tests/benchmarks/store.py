"""What the store costs, each figure beside its target, and beside dictionaries and lmdb.

    python -m tests.benchmarks.store [--connections 1M,10M] [--text FILE] [--only PART,...]
                                     [--repeat 3] [--json [FILE]]

Parts are memory, writing, reading and rivals. Each measurement has a process of its own. Rates are
by the clock on the wall where the disk or another thread has a say in them, and by processor time,
too: on a shared machine the wall measures the neighbours.
"""

import argparse
import os
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")


from tests.benchmarks import rivals, workload
from tests.benchmarks.process import apart

SCALES = {"k": 1_000, "M": 1_000_000}
PARTS = ("memory", "writing", "reading", "rivals")
SEED = 1

Figures = dict[str, float]
BySize = dict[int, Figures]


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--connections", type=_sizes, default="1M,10M", help="as 200k,1M")
    options.add_argument("--text", type=Path, help="a UTF-8 text in the place of made-up words")
    options.add_argument("--only", type=_parts, default=PARTS, help=",".join(PARTS))
    options.add_argument("--repeat", type=int, default=3, help="runs of each, median taken")
    options.add_argument("--json", nargs="?", const="-", help="print JSON, or write it to a file")
    options.add_argument("--directory", type=Path, help="where to write; a disk, best")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.directory) as directory:
        sizes = {*chosen.connections, *([rivals.SIZE] if "rivals" in chosen.only else [])}
        work = apart(workload.made, Path(directory) / "work", chosen.text, SEED, sorted(sizes))
        figures = measured(work, chosen.connections, chosen.only, chosen.repeat, Path(directory))
    print()
