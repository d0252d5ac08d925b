"""Measures how well a swarm predicts a text: an evaluation over rows of its storage peers."""

import asyncio
import time
from collections.abc import Callable

from giaann_p2p.client.session import Session
from giaann_p2p.client.thinking import thinking
from giaann_p2p.errors import UsageError
from giaann_p2p.model.device import resolve
from giaann_p2p.model.evaluate import Feed, Score
from giaann_p2p.model.manner import Variant
from giaann_p2p.model.parse import chunks
from giaann_p2p.model.profile import Measure
from giaann_p2p.node.reading.row_cache import Bill
from giaann_p2p.node.reading.thinking import Thinking
from giaann_p2p.solo.corpus import Corpus, opened
from giaann_p2p.solo.source import Source

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
    readout: str | None = None,
    bits: bool = False,
    device: str = "auto",
    progress: Progress = lambda _counts, _share: None,
) -> Score:
    """Measure how many tokens of a text a swarm predicts right (top-1), by rows that it reads.

    `seed_tokens`: tokens given of each sentence; None for the model's setting. `feed`: whether the
    `true` or the predicted token (`own`) is fed after each prediction. `readout`: for the profile
    `subwords`, `mix` (the default), `lif-train` or `lif-test`. `bits`: whether the
    bits that the text takes are measured, too, by the probabilities of `mix`.
    """
    seed = visiting.manifest.spec.seed_tokens if seed_tokens is None else seed_tokens
    if feed not in set(Feed) or seed < 1:
        raise UsageError(
            f"feed must be {' or '.join(Feed)}, not {feed}; seed_tokens 1 or more, not {seed}"
        )
    measure = Measure(
        seed_tokens=seed,
        timing=timing,
        feed=Feed(feed),
        variant=variant,
        readout=readout,
        bits=bits,
    )
    async with thinking(visiting, resolve(device)) as ready:
        with opened(source) as corpus:
            return await scored_over(ready, corpus, measure, progress)


async def scored_over(
    ready: Thinking,
    corpus: Corpus,
    measure: Measure,
    progress: Progress = lambda _counts, _share: None,
) -> Score:
    """Measure how many tokens of an open text are predicted right, from the rows of `ready`."""
    evaluation = ready.minds.evaluation(measure)
    began = time.perf_counter()
    for chunk in chunks(ready.profile.texts(corpus.blocks(), corpus.name)):
        scoring = await asyncio.to_thread(evaluation.of, chunk)
        ready.rows.ahead(scoring.neurons)
        await ready.through(scoring.steps, Bill())
        evaluation.score.seconds = time.perf_counter() - began
        progress(evaluation.score, corpus.share)
    return evaluation.score
