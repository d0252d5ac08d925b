"""What the store costs, each figure beside its target, and beside dictionaries and lmdb.

    python -m tests.benchmarks.store [--connections 1M,10M] [--text FILE] [--only PART,...]
                                     [--repeat 3] [--json [FILE]]

Parts are memory, writing, reading and rivals. Each measurement has a process of its own. Rates are
by the clock on the wall where the disk or another thread has a say in them, and by processor time,
too: on a shared machine the wall measures the neighbours.
"""

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory

os.environ.setdefault("OMP_NUM_THREADS", "1")

import msgspec
from rich.console import Console
from rich.table import Table

from tests.benchmarks import reading, rivals, workload, writing
from tests.benchmarks.process import apart, medians
from tests.benchmarks.targets import NONE, SAME_COST, Target, target, unit
from tests.benchmarks.workload import Workload

SCALES = {"k": 1_000, "M": 1_000_000}
PARTS = ("memory", "writing", "reading", "rivals")
SEED = 1

Figures = dict[str, float]
BySize = dict[int, Figures]


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--connections", type=_sizes, default="1M,10M", help="such as 200k,1M")
    options.add_argument("--text", type=Path, help="a UTF-8 text in the place of made-up words")
    options.add_argument("--only", type=_parts, default=PARTS, help=",".join(PARTS))
    options.add_argument("--repeat", type=int, default=3, help="runs of each, median taken")
    options.add_argument("--json", nargs="?", const="-", help="print JSON, or write it to a file")
    options.add_argument("--directory", type=Path, help="where to write: on the disk to measure")
    chosen = options.parse_args()
    with TemporaryDirectory(dir=chosen.directory) as name:
        directory = Path(name)
        rivalry = [rivals.SIZE] if "rivals" in chosen.only else []
        sizes = sorted({*chosen.connections, *rivalry})
        work = apart(workload.made, directory / "work", chosen.text, SEED, sizes)
        wanted = [size for size in chosen.connections if size in work.sizes]
        figures = measure(work, wanted, chosen.only, chosen.repeat, directory)
        compared = compare(work, chosen.repeat, directory) if rivalry else {}
    report(work, figures, compared, chosen.json)


def measure(
    work: Workload, sizes: list[int], parts: Sequence[str], repeat: int, directory: Path
) -> BySize:
    """Return the figures of each size, by name."""
    found: BySize = {size: {} for size in sizes}
    for size in sizes:
        home = directory / str(size)
        if "memory" in parts:
            found[size] |= apart(writing.memory, work, size)
        if {"writing", "reading"} & set(parts):
            runs = [_written(work, size, home) for _ in range(repeat)]
            found[size] |= medians(runs) if "writing" in parts else {}
        if "reading" in parts:
            found[size] |= apart(reading.reads, work, size, home)
        rmtree(home, ignore_errors=True)
    _compare_costs(found)
    return found


def _written(work: Workload, size: int, home: Path) -> Figures:
    rmtree(home, ignore_errors=True)
    figures = apart(writing.durable, work, size, home)
    figures |= apart(writing.recovery, work, size, home)
    return figures | apart(writing.reopened, work, size, home)


def _compare_costs(found: BySize) -> None:
    costs = {size: figures.get(writing.COST) for size, figures in found.items()}
    first = next(iter(costs.values()), None)
    for size, cost in list(costs.items())[1:]:
        if cost and first:
            found[size][SAME_COST] = cost / first


def compare(work: Workload, repeat: int, directory: Path) -> dict[str, Figures]:
    """Return the figures of the store and its rivals, all at one size."""
    found = {}
    for name in (rivals.STORE, *rivals.RIVALS):
        runs = []
        for _ in range(repeat):
            home = directory / "rival"
            if name == rivals.STORE:
                runs.append(apart(rivals.ours, work, rivals.SIZE, home))
            else:
                runs.append(apart(rivals.rival, name, work, rivals.SIZE, home))
            rmtree(home)
        found[name] = medians(runs)
    if len({figures.pop(rivals.CHECK) for figures in found.values()}) != 1:
        raise SystemExit("they do not hold the same")
    return found


def report(work: Workload, figures: BySize, compared: dict[str, Figures], to: str | None) -> None:
    """Print tables, and JSON where it is wanted."""
    Console().print(_table(work, figures))
    if compared:
        Console().print(_comparison(work, compared))
    told = {
        "workload": {size: msgspec.to_builtins(told) for size, told in work.sizes.items()},
        "figures": figures,
        "targets": {name: str(target(name)) for name in _names(figures) if target(name) != NONE},
        "units": {name: unit(name) for name in _names(figures)},
        "compared": compared,
    }
    if to == "-":
        print(json.dumps(told, indent=2, ensure_ascii=False))
    elif to:
        Path(to).write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n")


def _table(work: Workload, figures: BySize) -> Table:
    sizes = [f"{work.sizes[size].connections:,}" for size in figures]
    table = Table("connections", *sizes, "target", "unit")
    for name in _names(figures):
        bound = target(name)
        cells = [_cell(found.get(name), bound) for found in figures.values()]
        table.add_row(name, *cells, str(bound), unit(name))
    return table


def _cell(value: float | None, bound: Target) -> str:
    if value is None:
        return ""
    return _number(value) if bound.met(value) else f"[red]{_number(value)} !"


def _comparison(work: Workload, compared: dict[str, Figures]) -> Table:
    told = work.sizes[rivals.SIZE]
    table = Table(f"{told.connections:,} connections", *compared)
    ours = compared[rivals.STORE]
    for name, own in ours.items():
        cells = [
            f"{_number(found[name])} ({found[name] / own:.2g} x)" for found in compared.values()
        ]
        table.add_row(f"{name}, {unit(name)}", *cells)
    return table


def _names(figures: BySize) -> list[str]:
    return list(dict.fromkeys(name for found in figures.values() for name in found))


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _sizes(text: str) -> list[int]:
    return sorted(
        round(float(one.rstrip("kM")) * SCALES.get(one[-1], 1)) for one in text.split(",")
    )


def _parts(text: str) -> list[str]:
    parts = text.split(",")
    if unknown := set(parts) - set(PARTS):
        raise argparse.ArgumentTypeError(f"there is no part {', '.join(unknown)}")
    return parts


if __name__ == "__main__":
    main()
