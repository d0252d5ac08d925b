"""Make the tables of docs/scale.md anew."""

import argparse

import torch

from tests.benchmarks.scale.measured import machine
from tests.benchmarks.scale.page import MEASURED, PAGE, TABLES
from tests.benchmarks.scale.tables import replaced


def main() -> None:
    """Compute, and write or print."""
    options = argparse.ArgumentParser(description="Make the tables of docs/scale.md anew.")
    options.add_argument("--measure", action="store_true", help="also the one that takes a watch")
    options.add_argument("--print", action="store_true", help="print them only")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    page = PAGE.read_text()
    for table in [*TABLES, *([MEASURED] if chosen.measure else [])]:
        text = table.text()
        if table is MEASURED:
            text = f"Measured on: {machine()}.\n\n{text}"
        if chosen.print:
            print(f"{table.name}\n\n{text}\n", flush=True)
        else:
            page = replaced(page, table.name, text)
    if not chosen.print:
        PAGE.write_text(page)


if __name__ == "__main__":
    main()
