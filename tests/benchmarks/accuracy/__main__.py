"""Learning curves on one core: accuracy on documents that were not learned, by how much was.

    python -m tests.benchmarks.accuracy --text FILE... [--lines 400] [--sizes 0.0625,0.25,1]
        [--test-chars 40000] [--lif-tokens N] [--without words,lif] [--json FILE] [--svg FILE]
    python -m tests.benchmarks.accuracy --from FILE --svg FILE

wiki.txt comes first, always: learned and then predicted, it shows what is recalled. Of each further
text, growing parts are learned, and documents that were held out are predicted with true tokens fed
(see `split`). `tests.benchmarks.corpora` says how to get the Bible and the Brown corpus. `lif-test`
needs column segments, which take most of the memory: --lif-tokens bounds what it learns.

Seconds are processor time: learning without the parse, and predicting with all measures.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from rich.console import Console
from rich.table import Table

from tests.benchmarks.accuracy.figures import Figures, Point
from tests.benchmarks.accuracy.models import LifTest, Mix, Model, NGrams, Subwords, Words
from tests.benchmarks.accuracy.plot import draw, points_of, pyplot
from tests.benchmarks.accuracy.split import Split, split
from tests.benchmarks.model import WIKI

SIZES = "0.0625,0.125,0.25,0.5,1"


def main() -> None:
    """Measure, print and draw."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--text", type=Path, nargs="*", default=[], help="UTF-8 texts")
    options.add_argument("--lines", type=int, default=400, help="lines of a document")
    options.add_argument(
        "--sizes", default=SIZES, help="shares of the documents to learn, ascending"
    )
    options.add_argument(
        "--test-chars", type=int, default=40_000, help="characters of the test; 0: all"
    )
    options.add_argument("--lif-tokens", type=int, default=1 << 40, help="the most that lif learns")
    options.add_argument("--without", default="", help="leave out lif, ngrams or words")
    options.add_argument("--json", type=Path, help="write the figures here, too")
    options.add_argument("--svg", type=Path, help="draw the curves here; needs matplotlib")
    options.add_argument("--from", dest="known", type=Path, help="measure nothing: read this JSON")
    chosen = options.parse_args()
    if chosen.svg:
        pyplot()  # it may be missing, which is better known before the work
    points = points_of(json.loads(chosen.known.read_text())) if chosen.known else measured(chosen)
    if chosen.svg:
        draw([point for point in points if "learned" not in point.text], chosen.svg)


def measured(chosen: argparse.Namespace) -> list[Point]:
    """Measure and print; return all points."""
    torch.set_num_threads(1)
    without, sizes = set(chosen.without.split(",")), list(map(float, chosen.sizes.split(",")))
    wiki = WIKI.read_text("utf-8")
    points = list(curve(Split("wiki.txt, learned", [wiki], [wiki]), [1], without, 1 << 40))
    show(points)
    for path in chosen.text:
        text = split(path, chosen.lines, chosen.test_chars)
        for point in curve(text, sizes, without, chosen.lif_tokens):
            show([point])
            points.append(point)
            if chosen.json:  # what was measured is kept, even if the rest is too much
                chosen.json.write_text(json.dumps(list(map(asdict, points)), indent=1) + "\n")
    return points


def curve(
    text: Split, sizes: Sequence[float], without: set[str], lif_tokens: int
) -> Iterator[Point]:
    """Learn growing parts of a text; yield the figures after each."""
    began = time.process_time()
    subwords = Subwords(text.train, text.test)
    tokens, seconds = subwords.tokens(range(len(text.train))), time.process_time() - began
    print(f"{text.name}: {tokens:,} tokens parsed in {seconds:,.0f} s", file=sys.stderr)
    models: dict[str, Model] = {"mix": Mix(subwords)}
    if "ngrams" not in without:
        models["ngrams"] = NGrams(subwords)
    if "lif" not in without:
        models["lif"] = LifTest(subwords, lif_tokens)
    if "words" not in without:
        models["words"] = Words(text.train, text.test)
    ends = [0, *(max(1, round(size * len(text.train))) for size in sizes)]
    for first, end in pairwise(ends):
        figures: list[Figures] = []
        for model in models.values():
            model.learn(range(first, end))
            figures += model.tested()
        yield Point(text.name, end, subwords.tokens(range(end)), figures)


def show(points: Sequence[Point]) -> None:
    """Print a table for each point."""
    for point in points:
        title = f"{point.text}: {point.tokens:,} tokens in {point.documents} documents learned"
        table = Table(title=title, title_justify="left")
        names = ("top-1", "given", "strict", "top-5", "bits/byte", "connections", "MB", "learn s")
        for name in ("", *names, "test s", "positions"):
            table.add_column(name, justify="left" if not name else "right")
        for one in point.figures:
            table.add_row(*_row(one))
        table.caption = "* Its tokens are words, so it cannot be compared token by token."
        Console(width=120).print(table)


def _row(one: Figures) -> Iterator[str]:
    yield f"{one.model} *" if "words" in one.model else one.model
    yield "-" if one.model == "lif-test" else f"{one.top1:.4f}"
    for figure in (one.given, one.strict, one.top5, one.bits_per_byte):
        yield "-" if figure is None else f"{figure:.4f}"
    yield from (f"{one.connections:,}", f"{one.nbytes / 1e6:,.1f}")
    yield from (f"{one.learn_seconds:,.1f}", f"{one.test_seconds:,.1f}", f"{one.positions:,}")


if __name__ == "__main__":
    main()
