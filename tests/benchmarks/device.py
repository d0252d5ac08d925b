"""The model on each device that this machine has, side by side, and docs/gpu.md's table.

    python -m tests.benchmarks.device [--text FILE] [--repeat 3] [--write]

Rates are by the clock on the wall, because a GPU works while the processor waits; the best of the
repeats counts. Every device's results are the same, which is checked: parsing and learning by the
digest of what is learned, answers token by token. `--write` puts the table into docs/gpu.md, which
says so if there was no GPU.
"""

import argparse
import asyncio
import time
from collections.abc import Callable, Iterable
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

import torch

from giaann_p2p.model.delta import Delta, total
from giaann_p2p.model.digest import digest
from giaann_p2p.model.learn import learn
from giaann_p2p.model.manner import Manner
from giaann_p2p.model.parse import Parser, chunks, max_chars
from giaann_p2p.model.sequence import Sequences
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.text import document_sentences, text_sentences
from giaann_p2p.model.words_profile import WordsProfile
from giaann_p2p.node.reading.row_cache import RowCache
from giaann_p2p.node.reading.thinking import Thinking, Thought
from tests.benchmarks.batching import Learned, Remembered
from tests.benchmarks.model import WIKI
from tests.benchmarks.scale.tables import Table, number, replaced

PAGE = Path(__file__).parents[2] / "docs" / "gpu.md"
PROMPTS = (1, 16, 64, 256)
WORDS, TOKENS = 12, 20
_NEVER_OLD, _CACHE_BYTES = 1e9, 1 << 28


class Measured(NamedTuple):
    """The rates of one device, and what came of the work."""

    cells: dict[str, str]
    digest: str
    answers: list[list[str]]


def main() -> None:
    """Measure, compare, print, and write the page if told to."""
    options = argparse.ArgumentParser(prog="python -m tests.benchmarks.device")
    options.add_argument("--text", type=Path, default=WIKI, help="a UTF-8 text (default: wiki.txt)")
    options.add_argument("--repeat", type=int, default=3, help="runs of each, the best taken")
    options.add_argument("--write", action="store_true", help="write docs/gpu.md's table anew")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    devices = list(found())
    measured = [asyncio.run(measure(one, chosen.text, chosen.repeat)) for one in devices]
    for other in measured[1:]:
        assert (other.digest, other.answers) == (measured[0].digest, measured[0].answers)
    names = tuple(map(named, devices))
    table = Table("devices", names, lambda at: measured[at].cells).text()
    if len(devices) == 1:
        table += "\n\nThere was no GPU to be had when this was measured."
    print(table)
    if chosen.write:
        PAGE.write_text(replaced(PAGE.read_text(), "devices", table))


def found() -> Iterable[torch.device]:
    """Yield the processor, then the first GPU, if there is one."""
    yield torch.device("cpu")
    if torch.cuda.is_available():
        yield torch.device("cuda:0")


def named(device: torch.device) -> str:
    """Return a device's name, as a reader knows it."""
    if device.type == "cpu":
        return "one core"
    return str(torch.cuda.get_device_name(device))


async def measure(device: torch.device, text: Path, repeat: int) -> Measured:
    """Measure one device."""
    spec = ModelSpec()
    with text.open("rb") as file:
        cut = list(chunks(document_sentences(file, str(text), max_chars(spec))))
    sentences = sum(map(len, cut))

    def parsed() -> list[Sequences]:  # a new parser knows no word's tag yet
        return [part.sequences for part in Parser(spec, device).parse(cut)]

    batches = parsed()
    work: list[tuple[str, Callable[[], object]]] = [
        ("parse, sentences/s", parsed),
        ("learn, sentences/s", lambda: [_learned(one, spec, device) for one in batches]),
    ]
    cells = {name: number(sentences / _best(job, device, repeat)) for name, job in work}
    thinking = _thinking(spec, device)
    prompts = [one.text.split() for one in text_sentences(WIKI.read_text(), max_chars(spec))]
    beginnings = [" ".join(words[:WORDS]) for words in prompts if len(words) > WORDS + 1]
    answers = await _answers(thinking, beginnings)
    for count in PROMPTS:
        some = list(islice(cycle(beginnings), count))
        rates = []
        for _ in range(repeat + 1):  # the first one warms up
            began = time.perf_counter()
            tokens = sum(map(len, await _answers(thinking, some)))
            rates.append(tokens / (time.perf_counter() - began))
        told = f"answer {count} prompt{'' if count == 1 else 's at once'}, tokens/s"
        cells[told] = number(max(rates[1:]))
    await thinking.close()
    delta = total([_learned(one, spec, device) for one in batches])
    return Measured(cells, f"{digest(delta):x}", answers)


def _learned(sequences: Sequences, spec: ModelSpec, device: torch.device) -> Delta:
    return learn(sequences, spec, device)


def _best(job: Callable[[], object], device: torch.device, repeat: int) -> float:
    """Return the least seconds that a job takes."""
    found = []
    for _ in range(repeat):
        began = time.perf_counter()
        job()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        found.append(time.perf_counter() - began)
    return min(found)


def _thinking(spec: ModelSpec, device: torch.device) -> Thinking:
    profile = WordsProfile(spec, device)
    profile.parser = Remembered(Parser(spec))
    rows = Learned(spec)
    cache = RowCache(rows.read, _CACHE_BYTES, fresh=_NEVER_OLD)
    return Thinking(cache, profile, frequent=rows.frequent)


async def _answers(thinking: Thinking, prompts: list[str]) -> list[list[str]]:
    return await asyncio.gather(*(_answer(thinking, prompt) for prompt in prompts))


async def _answer(thinking: Thinking, prompt: str) -> list[str]:
    thought, words = Thought(prompt, Manner(max_tokens=TOKENS), thinking), list[str]()
    await thought.begin()
    while (token := await thought.next()) is not None:
        words.append(token.word)
    thought.close()
    return words


if __name__ == "__main__":
    main()
