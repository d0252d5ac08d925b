"""Rates of the model in one process on one core, beside the plain version and the reference's.

    python -m tests.benchmarks.model [--text FILE] [--repeat 5] [--json FILE]

Every rate is the median of the repeats, by processor time: the process keeps to one core and one
thread, and on a shared machine the clock on the wall would measure the neighbours. The plain
version has the same parse before it, so its learning and predicting are measured alone, too.
"""

import argparse
import json
import os
import resource
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from rich.console import Console
from rich.table import Table

from giaann_p2p.model.activation import Batch
from giaann_p2p.model.delta import Delta, total
from giaann_p2p.model.evaluate import Feed, Score, names_of, score_sequences
from giaann_p2p.model.generate import Mind
from giaann_p2p.model.learn import learn
from giaann_p2p.model.lexicon import delimiter
from giaann_p2p.model.manner import Timing
from giaann_p2p.model.parse import Parsed, Parser, chunks, max_chars
from giaann_p2p.model.rows import run
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.text import document_sentences
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from tests.plain.learn import Memory, Shape
from tests.plain.learn import learn as plain_learn
from tests.plain.predict import Mind as PlainMind
from tests.plain.predict import feed
from tests.plain.sequence import Delimiter, Neuron, Position

REFERENCE = {"parse + learn": 65.0, "predict": 480.0}
"""The public reference implementation on a machine of this kind."""

WIKI = Path(__file__).parent.parent / "data" / "wiki.txt"


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--text", type=Path, default=WIKI, help="a UTF-8 text (default: wiki.txt)")
    options.add_argument("--repeat", type=int, default=5, help="runs of each, median taken")
    options.add_argument("--json", type=Path, help="write the JSON here, too")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    figures = measure(chosen.text, chosen.repeat)
    show(figures)
    print(json.dumps(figures))
    if chosen.json:
        chosen.json.write_text(json.dumps(figures, indent=2) + "\n")


def measure(text: Path, repeat: int) -> dict[str, float | None]:
    """Return the figures by name."""
    spec = ModelSpec()
    with text.open("rb") as file:
        cut = list(chunks(document_sentences(file, str(text), max_chars(spec))))
    sentences = sum(map(len, cut))
    parser = Parser(spec)
    parsed = parser.parse(cut)  # loads what is loaded once

    def split() -> None:
        with text.open("rb") as file:
            list(document_sentences(file, str(text), max_chars(spec)))

    def learn_all() -> Delta:
        return total([learn(part.sequences, spec) for part in parsed])

    seconds = {
        "split": median(split, repeat),
        "parse": median(lambda: parser.parse(cut), repeat),
        "learn": median(learn_all, repeat),
    }
    rows = store_of(learn_all(), spec)  # as a brain reads them

    def predict(abreast: int = 16) -> Score:
        batch, score = Batch(spec), Score()
        minds = [Mind(batch, (Timing.EXACT,)) for _ in range(abreast)]
        sequences = [sequence for part in parsed for sequence in part.sequences]
        run(score_sequences(minds, sequences, spec.seed_tokens, Feed.TRUE, score), rows)
        return score

    score = predict()
    tokens = score.seeded + score.predicted
    seconds["predict"] = median(predict, repeat)
    seconds["predict alone"] = median(lambda: predict(abreast=1), repeat)
    plain = PlainBrain(parsed)
    seconds["plain learn"] = median(plain.learn, repeat)
    seconds["plain predict"] = median(plain.predict, repeat)
    whole = seconds["split"] + seconds["parse"] + seconds["learn"]
    plain_whole = seconds["split"] + seconds["parse"] + seconds["plain learn"]
    return {
        "sentences": sentences,
        "parse: sentences/s": sentences / (seconds["split"] + seconds["parse"]),
        "learn: sentences/s": sentences / seconds["learn"],
        "parse + learn: sentences/s": sentences / whole,
        "predict: tokens/s": tokens / seconds["predict"],
        "predict one by one: tokens/s": tokens / seconds["predict alone"],
        "accuracy": score.accuracy,
        "plain learn: sentences/s": sentences / seconds["plain learn"],
        "plain parse + learn: sentences/s": sentences / plain_whole,
        "plain predict: tokens/s": tokens / seconds["plain predict"],
        "peak RAM: MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def store_of(delta: Delta, spec: ModelSpec) -> Store:
    """Return a store in memory that holds a delta."""
    store = Store.in_memory(spec, Layout())
    store.hold(range(store.layout.shards))
    store.apply([Update(bytes(16), 0, store.shards, delta)])
    store.compact()
    return store


class PlainBrain:
    """The dictionary version, on the same sequences."""

    def __init__(self, parsed: Iterable[Parsed]) -> None:
        self._sequences = [
            [
                Position(Neuron(*name), column)
                for name, column in zip(names_of(one), one.column.tolist(), strict=True)
            ]
            for part in parsed
            for one in part.sequences
        ]
        self._memory = Memory()

    def learn(self) -> None:
        """Learn all."""
        self._memory = Memory()
        for sequence in self._sequences:
            plain_learn(self._memory, sequence, Shape())

    def predict(self) -> None:
        """Take in the true tokens, and predict after the seed."""
        shape = Shape()
        for sequence in self._sequences:
            mind = PlainMind(
                self._memory, shape, "exact", str, lambda w: Delimiter[delimiter(w).name]
            )
            for at, position in enumerate(sequence):
                if at >= shape.seed_tokens:
                    mind.candidates()
                feed([mind], position.neuron)


def median(action: Callable[[], object], repeat: int) -> float:
    """Return the median of the seconds that an action takes."""
    taken = []
    for _ in range(repeat):
        started = time.process_time()
        action()
        taken.append(time.process_time() - started)
    return statistics.median(taken)


def show(figures: dict[str, float | None]) -> None:
    """Print a table."""
    table = Table("", "this project", "plain Python", "reference", "to the reference")
    for name, unit in (
        ("parse + learn", "sentences/s"),
        ("learn", "sentences/s"),
        ("predict", "tokens/s"),
    ):
        fast, plain = figures[f"{name}: {unit}"], figures[f"plain {name}: {unit}"]
        known = REFERENCE.get(name)
        ratio = f"{fast / known:.1f} x" if fast and known else ""
        table.add_row(
            f"{name}, {unit}",
            f"{fast:,.0f}",
            f"{plain:,.0f}",
            f"{known:,.0f}" if known else "",
            ratio,
        )
    table.add_row("parse, sentences/s", f"{figures['parse: sentences/s']:,.0f}")
    alone = figures["predict one by one: tokens/s"]
    table.add_row("predict, one sentence after another, tokens/s", f"{alone:,.0f}")
    table.add_row("accuracy (exact)", f"{figures['accuracy']:.4f}")
    table.add_row("peak RAM, MB", f"{figures['peak RAM: MB']:,.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
