"""Rates of both profiles in one process on one core, in tokens per second of processor time.

    python -m tests.benchmarks.profiles [--text FILE] [--repeat 5]

Each rate is the median of the repeats. The text is learned and then predicted, true tokens fed. A
token of `words` is longer than one of `subwords`, so bytes per second are shown, too.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from giaann_p2p.model.delta import Delta, total
from giaann_p2p.model.evaluate import Feed
from giaann_p2p.model.learn import learn
from giaann_p2p.model.parse import Parser, chunks
from giaann_p2p.model.profile import Measure
from giaann_p2p.model.profiles import profile_of
from giaann_p2p.model.rows import DeltaRows, run
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.subwords.learn import learn_tokens
from giaann_p2p.model.subwords.parse import TextParser
from giaann_p2p.model.subwords.spec import subword_spec
from giaann_p2p.model.text import Sentence
from tests.benchmarks.model import WIKI


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--text", type=Path, default=WIKI, help="a UTF-8 text (default: wiki.txt)")
    options.add_argument("--repeat", type=int, default=5, help="runs of each, median taken")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    for spec in (ModelSpec(), subword_spec()):
        measure(spec, chosen.text, chosen.repeat)


def measure(spec: ModelSpec, text: Path, repeat: int) -> None:
    """Print one profile's rates."""
    profile = profile_of(spec)
    cut = list(chunks(profile.texts([text.read_bytes()], str(text))))
    parse, learn_all = _parts(spec, cut)
    tokens, delta = parse(), learn_all()
    size = text.stat().st_size
    for name, work in (("parse", parse), ("learn", learn_all)):
        seconds = _seconds(work, repeat)
        print(f"{spec.profile:9} {name:8} {tokens / seconds:11,.0f} tokens/s", end="")
        print(f" {size / seconds / 1e6:8.2f} MB/s")
    rows = DeltaRows(delta)
    evaluation = profile.minds().evaluation(Measure(seed_tokens=8, feed=Feed.TRUE))
    steps = [evaluation.of(chunk).steps for chunk in cut]
    started = time.process_time()
    for one in steps:
        run(one, rows)
    seconds, score = time.process_time() - started, evaluation.score
    print(f"{spec.profile:9} {'predict':8} {score.predicted / seconds:11,.0f} tokens/s", end="")
    print(f" of {delta.connections:,} connections, {score.accuracy:.4f} right")


def _parts(
    spec: ModelSpec, cut: list[list[Sentence]]
) -> tuple[Callable[[], int], Callable[[], Delta]]:
    """Return what parses the text, and counts its tokens, and what learns it after the parse."""
    if spec.profile == "words":
        words = Parser(spec)
        sequences = [parsed.sequences for parsed in words.parse(cut)]
        return (
            lambda: sum(len(parsed.sequences.concept) for parsed in words.parse(cut)),
            lambda: total([learn(one, spec) for one in sequences]),
        )
    subwords = TextParser(spec)
    batches = [parsed.sequences for parsed in subwords.parse(cut)]
    return (
        lambda: sum(len(parsed.sequences.token) for parsed in subwords.parse(cut)),
        lambda: total([learn_tokens(one, spec) for one in batches]),
    )


def _seconds(work: Callable[[], object], repeat: int) -> float:
    found = []
    for _ in range(repeat):
        started = time.process_time()
        work()
        found.append(time.process_time() - started)
    return statistics.median(found)


if __name__ == "__main__":
    main()
