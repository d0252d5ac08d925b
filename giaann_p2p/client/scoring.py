"""Measures how well a swarm predicts a text: `model.evaluate` over rows of its storage peers."""

import asyncio
import time
from collections.abc import Callable, Iterator

from giaann_p2p.client.session import Session
from giaann_p2p.client.thinking import thinking
from giaann_p2p.errors import UsageError
from giaann_p2p.model.device import resolve
from giaann_p2p.model.evaluate import Feed, Score, names_of, score_sequence
from giaann_p2p.model.generate import Mind
from giaann_p2p.model.manner import Variant, timings
from giaann_p2p.model.parse import Parser, chunks, max_chars
from giaann_p2p.model.sequence import Sequences
from giaann_p2p.node.reading.row_cache import Bill
from giaann_p2p.node.reading.thinking import Thinking
from giaann_p2p.solo.corpus import Corpus, opened
from giaann_p2p.solo.source import Source

_AT_ONCE = 8
"""Number of sequences scored concurrently, so that their questions for rows share reads."""
Progress = Callable[[Score, float], None]
"""Callback with the score so far, and the share of the text that has been read, 0 to 1."""


async def scored(
    visiting: Session,
    source: Source,
    *,
    seed_tokens: int | None = None,
    timing: str = "auto",
    feed: str = "true",
    variant: Variant | None = None,
    device: str = "auto",
    progress: Progress = lambda _counts, _share: None,
) -> Score:
    """Measure how many tokens of a text a swarm predicts right (top-1), with rows read through it.

    `seed_tokens`: tokens given of each sentence; None for the model's setting. `feed`: whether the
    `true` or the predicted token (`own`) is fed after each prediction.
    """
    async with thinking(visiting, resolve(device)) as ready:
        with opened(source) as corpus:
            return await scored_over(ready, corpus, seed_tokens, timing, feed, variant, progress)


async def scored_over(
    ready: Thinking,
    corpus: Corpus,
    seed_tokens: int | None = None,
    timing: str = "auto",
    feed: str = "true",
    variant: Variant | None = None,
    progress: Progress = lambda _counts, _share: None,
) -> Score:
    """Measure how many tokens of an open text are predicted right, from the rows of `ready`."""
    seed = ready.spec.seed_tokens if seed_tokens is None else seed_tokens
    if feed not in set(Feed) or seed < 1:
        raise UsageError(
            f"feed must be {' or '.join(Feed)}, not {feed}; seed_tokens 1 or more, not {seed}"
        )
    chosen, way = timings(timing), Feed(feed)
    minds = [Mind(ready.minds, chosen, variant) for _ in range(_AT_ONCE)]
    scores = [Score() for _ in minds]
    began = time.perf_counter()
    sequences = _sequences(ready, corpus, scores[0])

    async def work(mind: Mind, score: Score) -> None:
        for sequence in sequences:  # all workers take from this one iterator
            ready.rows.ahead(name.neuron for name in names_of(sequence))
            steps = score_sequence(mind, sequence, seed, way, score)
            await ready.through(steps, Bill())
            mind.forget()
            progress(_sum(scores, began), corpus.share)

    async with asyncio.TaskGroup() as group:
        for mind, score in zip(minds, scores, strict=True):
            group.create_task(work(mind, score))
    return _sum(scores, began)


def _sequences(ready: Thinking, corpus: Corpus, score: Score) -> Iterator[Sequences]:
    """Yield the sequences of a text that training would learn; count the others as skipped."""
    parser = Parser(ready.spec)
    for chunk in chunks(corpus.sentences(max_chars(ready.spec))):
        for parsed in parser.parse([chunk]):
            score.skipped += parsed.sentences - len(parsed.sequences)
            yield from parsed.sequences


def _sum(scores: list[Score], began: float) -> Score:
    """Return the sum of scores; its time is that since `began`, a time of `perf_counter`."""
    whole = Score(seconds=time.perf_counter() - began)
    for name in vars(whole):
        if name != "seconds":
            setattr(whole, name, sum(getattr(score, name) for score in scores))
    return whole
