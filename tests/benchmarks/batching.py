"""How much faster one compute peer answers many prompts at once than one after another.

    python -m tests.benchmarks.batching [--at-once 1,4,16,64] [--repeat 5] [--beam] [--json [FILE]]

In one process on one core, by processor time, through the row cache and the event loop of a compute
peer, with all rows in memory. The prompts are the first words of sentences of the tests' wiki.txt,
which the peer has learned. Both rates of a line are of the same run and the same warm peer; the
best of the repeats counts. The prompts are parsed beforehand, or as a peer does it, in a thread.
"""

import argparse
import asyncio
import json
import os
import time
from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from rich.console import Console
from rich.table import Table

from giaann_p2p.model.delta import total
from giaann_p2p.model.learn import learn
from giaann_p2p.model.manner import Beam, Manner
from giaann_p2p.model.parse import Parser, PromptSentence, chunks, max_chars
from giaann_p2p.model.rows import Answer, Neuron, Question, Row
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.text import Sentence, document_sentences, text_sentences
from giaann_p2p.model.words_profile import WordsProfile
from giaann_p2p.node.reading.row_cache import RowCache
from giaann_p2p.node.reading.thinking import Thinking, Thought
from giaann_p2p.swarm.reading.known_rows import Known
from tests.benchmarks.model import WIKI, store_of

WORDS = 12
"""The number of words of a prompt."""
_NEVER_OLD = 1e9
_CACHE_BYTES = 1 << 28


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(prog="python -m tests.benchmarks.batching")
    options.add_argument("--at-once", default="1,4,16,64", help="numbers of prompts")
    options.add_argument("--repeat", type=int, default=5, help="runs of each, the best taken")
    options.add_argument("--beam", action="store_true", help="search with beams of 3 by 3")
    options.add_argument("--json", nargs="?", const="-", help="print JSON, or write it to a file")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    manner = Manner(max_tokens=20, beam=Beam()) if chosen.beam else Manner()
    numbers = [int(number) for number in chosen.at_once.split(",")]
    figures = asyncio.run(measure(numbers, chosen.repeat, manner))
    show(figures)
    if chosen.json == "-":
        print(json.dumps(figures))
    elif chosen.json:
        Path(chosen.json).write_text(json.dumps(figures, indent=2) + "\n")


async def measure(
    numbers: Sequence[int], repeat: int, manner: Manner
) -> list[dict[str, float | str]]:
    """Return a line of figures for each number of prompts, parsed beforehand or not."""
    spec = ModelSpec()
    parser, rows = Parser(spec), Learned(spec)
    sentences = [one.text.split() for one in text_sentences(WIKI.read_text(), max_chars(spec))]
    prompts = [" ".join(words[:WORDS]) for words in sentences if len(words) > WORDS + 1]
    figures: list[dict[str, float | str]] = []
    for parsing in (Remembered(parser), parser):
        cache = RowCache(rows.read, _CACHE_BYTES, fresh=_NEVER_OLD)
        profile = WordsProfile(spec, torch.device("cpu"))
        profile.parser = parsing
        peer = Thinking(cache, profile, frequent=rows.frequent)
        for number in numbers:
            some = list(islice(cycle(prompts), number))
            await rate(peer, some, manner, together=False)  # rows, boards and lanes are warm now
            await rate(peer, some, manner, together=True)
            best = {True: 0.0, False: 0.0}
            for _ in range(repeat):
                for together in best:
                    found = await rate(peer, some, manner, together)
                    best[together] = max(best[together], found)
            figures.append(
                {
                    "parsed": "as they come" if parsing is parser else "beforehand",
                    "prompts": number,
                    "one after another: tokens/s": best[False],
                    "at once: tokens/s": best[True],
                    "ratio": best[True] / best[False],
                }
            )
        await peer.close()
    return figures


async def rate(peer: Thinking, prompts: Sequence[str], manner: Manner, together: bool) -> float:
    """Return the tokens per second of processor time of all answers."""
    began = time.process_time()
    if together:
        tokens = sum(await asyncio.gather(*(answered(peer, one, manner) for one in prompts)))
    else:
        tokens = sum([await answered(peer, one, manner) for one in prompts])
    return tokens / (time.process_time() - began)


async def answered(peer: Thinking, prompt: str, manner: Manner) -> int:
    """Answer a prompt; return the number of tokens."""
    thought, tokens = Thought(prompt, manner, peer), 0
    await thought.begin()
    while await thought.next() is not None:
        tokens += 1
    return tokens


class Learned:
    """The rows of the tests' text, in memory."""

    def __init__(self, spec: ModelSpec) -> None:
        with WIKI.open("rb") as file:
            cut = list(chunks(document_sentences(file, str(WIKI), max_chars(spec))))
        parsed = Parser(spec).parse(cut)
        self._store = store_of(total([learn(part.sequences, spec) for part in parsed]), spec)
        self._rows: dict[Neuron, Row | None] = {}

    async def read(self, neurons: Sequence[Neuron], known: Known) -> Answer:
        """Return the rows of some neurons."""
        missing = [neuron for neuron in neurons if neuron not in self._rows]
        self._rows |= zip(missing, self._store.read(Question(missing)), strict=True)
        return [self._rows[neuron] for neuron in neurons]

    async def frequent(self, most: int) -> Answer:
        """Return the most frequent nouns."""
        return self._store.read(Question((), frequent=most))


class Remembered(Parser):
    """A parser that parses a sentence only once."""

    def __init__(self, parser: Parser) -> None:
        self._parser = parser
        self._known: dict[str, PromptSentence] = {}

    def parse_prompt(self, sentences: list[Sentence]) -> list[PromptSentence]:
        """Return the parsed sentences."""
        for one in sentences:
            if one.text not in self._known:
                (self._known[one.text],) = self._parser.parse_prompt([one])
        return [self._known[one.text] for one in sentences]


def show(figures: list[dict[str, float | str]]) -> None:
    """Print a table."""
    table = Table("parsed", "prompts", "one after another, tokens/s", "at once, tokens/s", "ratio")
    for line in figures:
        table.add_row(*(f"{x:,.2f}" if x == line["ratio"] else _told(x) for x in line.values()))
    Console().print(table)


def _told(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:,.0f}"


if __name__ == "__main__":
    main()
