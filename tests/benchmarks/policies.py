"""What least overlap saves against chance, and what it saves to put like sentences together.

    python -m tests.benchmarks.policies [--text FILE] [--chunks 240] [--window 1024]
                                        [--in-flight 8] [--json [FILE]]

Contention counts, for each chunk that begins to be learned, what it has in common with those that
are being learned: columns, and rows (neurons). Chunks are learned in the text's order, in one drawn
by chance, and with least overlap, by sketches of their concepts, or of their words, which need no
parse. Groups are of sentences within a window, by their concepts, and by their words.

A text is also read with its sentences shuffled, as a collection of unrelated ones would be. The
default text has but three chunks, all of them in flight at once: policies differ on larger ones.
"""

import argparse
import json
import random
import statistics
from collections.abc import Callable, Collection, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from pyroaring import BitMap
from rich.console import Console
from rich.table import Table

from giaann_p2p.model.ids import word_id
from giaann_p2p.model.learn import learn
from giaann_p2p.model.parse import Parser, max_chars
from giaann_p2p.model.sequence import Ids, Sequences
from giaann_p2p.model.spec import CHUNK, ModelSpec
from giaann_p2p.model.text import Sentence, document_sentences
from giaann_p2p.store.codec.parcel import encode
from giaann_p2p.swarm.training.overlap import sketch
from giaann_p2p.swarm.training.policy import AtRandom, LeastOverlap
from giaann_p2p.swarm.training.schedule import Policy
from tests.benchmarks.grouping import grouped

WIKI = Path(__file__).parent.parent / "data" / "wiki.txt"
SPEC = ModelSpec()
JOBS = 5
_AT_ONCE = 8

Figures = dict[str, float]
Chunks = list[list[Sentence]]


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--text", type=Path, default=WIKI, help="a UTF-8 text (default: wiki.txt)")
    options.add_argument("--chunks", type=int, default=240, help="how many of it at most")
    options.add_argument("--window", type=int, default=1024, help="sentences grouped together")
    options.add_argument("--in-flight", type=int, default=8, help="chunks learned at once")
    options.add_argument("--json", nargs="?", const="-", help="print JSON, or write it to a file")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    with chosen.text.open("rb") as file:
        read = document_sentences(file, str(chosen.text), max_chars(SPEC))
        sentences = list(islice(read, chosen.chunks * CHUNK))
    shuffled = random.Random(1).sample(sentences, len(sentences))
    parser = Parser(SPEC)
    found = contention(parser, sentences, chosen.in_flight)
    groups = {
        "as it is": grouping(parser, sentences, chosen.window),
        "shuffled": grouping(parser, shuffled, chosen.window),
    }
    show(found, groups, len(sentences), chosen.in_flight)
    told = {"sentences": len(sentences), "contention": found, "grouping": groups}
    if chosen.json == "-":
        print(json.dumps(told, indent=2))
    elif chosen.json:
        Path(chosen.json).write_text(json.dumps(told, indent=2) + "\n")


class InOrder:
    """The first that waits."""

    def pick(self, waiting: BitMap, busy: Collection[int]) -> int:
        """Return one of those that wait."""
        return waiting[0]


def contention(parser: Parser, sentences: list[Sentence], in_flight: int) -> dict[str, Figures]:
    """Return what chunks share with those in flight, for each policy."""
    chunks = cut(sentences, [np.arange(len(sentences))])
    parsed = parse(parser, chunks)
    columns = [np.unique(one.concept) for one in parsed]
    rows = [np.unique(one.concept * np.uint64(31) ^ one.feature) for one in parsed]
    spoken = [np.concatenate([words(sentence) for sentence in chunk]) for chunk in chunks]

    def least(of: Sequence[Ids]) -> Callable[[bytes], Policy]:
        def policy(job: bytes) -> Policy:
            found = LeastOverlap(job)
            for number, one in enumerate(of):
                found.note(number, sketch(one))
            return found

        return policy

    policies: dict[str, Callable[[bytes], Policy]] = {
        "in order": lambda _: InOrder(),
        "at random": AtRandom,
        "least overlap": least(columns),
        "least overlap, by words": least(spoken),
    }
    return {
        name: {
            "columns": shared(policy, columns, in_flight),
            "rows": shared(policy, rows, in_flight),
        }
        for name, policy in policies.items()
    }


def shared(policy: Callable[[bytes], Policy], sets: Sequence[Ids], in_flight: int) -> float:
    """Return how much a chunk has in common with those in flight, together, on average."""
    return statistics.fmean(
        _shared(policy(bytes([job]) * 16), sets, in_flight) for job in range(JOBS)
    )


def _shared(policy: Policy, sets: Sequence[Ids], in_flight: int) -> float:
    waiting, busy, common = BitMap(range(len(sets))), list[int](), 0
    while waiting:
        del busy[: max(0, len(busy) - in_flight + 1)]  # the oldest is done
        chunk = policy.pick(waiting, busy)
        waiting.remove(chunk)
        both = (np.intersect1d(sets[chunk], sets[at], assume_unique=True) for at in busy)
        common += sum(map(len, both))
        busy.append(chunk)
    return common / len(sets)


def grouping(parser: Parser, sentences: list[Sentence], window: int) -> dict[str, Figures]:
    """Return what a chunk comes to, by how sentences are put together."""
    single = [one.concept for one in parse(parser, [[sentence] for sentence in sentences])]
    spoken = [words(sentence) for sentence in sentences]
    return {
        "in order": figures(parser, cut(sentences, [np.arange(len(sentences))])),
        "by concepts": figures(parser, cut(sentences, windows(single, window))),
        "by words": figures(parser, cut(sentences, windows(spoken, window))),
    }


def windows(columns: Sequence[Ids], window: int) -> list[np.ndarray]:
    """Return groups of sentences, window by window."""
    return [
        group + at
        for at in range(0, len(columns), window)
        for group in grouped(columns[at : at + window], CHUNK)
    ]


def cut(sentences: list[Sentence], groups: Sequence[np.ndarray]) -> Chunks:
    """Return the chunks of some groups of sentences."""
    return [
        [sentences[at] for at in group[first : first + CHUNK]]
        for group in groups
        for first in range(0, len(group), CHUNK)
    ]


def parse(parser: Parser, chunks: Chunks) -> list[Sequences]:
    """Return the sequences of chunks."""
    size = _AT_ONCE * CHUNK // max(map(len, chunks), default=1)
    parts = (chunks[at : at + size] for at in range(0, len(chunks), size))
    return [parsed.sequences for part in parts for parsed in parser.parse(part)]


def words(sentence: Sentence) -> Ids:
    """Return the longer words of a sentence, as numbers."""
    found = {word for word in sentence.text.lower().split() if len(word) > 3}
    return np.array(sorted(map(word_id, found)), np.uint64)


def figures(parser: Parser, chunks: Chunks) -> Figures:
    """Return what a chunk comes to."""
    deltas = [learn(one, SPEC) for one in parse(parser, chunks)]
    return {
        "bytes": statistics.fmean(len(encode(delta)) for delta in deltas),
        "columns": statistics.fmean(len(np.unique(delta.concept)) for delta in deltas),
        "rows": statistics.fmean(delta.neurons for delta in deltas),
    }


def show(
    found: dict[str, Figures],
    groups: dict[str, dict[str, Figures]],
    sentences: int,
    in_flight: int,
) -> None:
    """Print tables."""
    print(f"{sentences:,} sentences")
    _print(f"in common with {in_flight - 1} in flight, a chunk", found, "at random")
    for text, figures in groups.items():
        _print(f"a chunk, the text {text}", figures, "in order")


def _print(title: str, found: dict[str, Figures], to: str) -> None:
    table = Table(title, *next(iter(found.values())))
    for name, row in found.items():
        table.add_row(name, *(f"{v:,.0f} ({v / found[to][k]:.3f} x)" for k, v in row.items()))
    Console().print(table)


if __name__ == "__main__":
    main()
