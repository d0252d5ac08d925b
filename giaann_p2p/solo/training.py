"""Learning a text into a brain, chunk by chunk: resumable, interruptible, idempotent.

Every chunk is in the store for good before the next one comes, together with the fact that it is;
so whatever happens, learning goes on where it was.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator

import torch

from giaann_p2p.model import english
from giaann_p2p.model.learn import learn
from giaann_p2p.model.parse import chunks, max_chars, parse_chunks
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.text import Sentence
from giaann_p2p.solo.corpus import Corpus
from giaann_p2p.solo.jobs import Progress
from giaann_p2p.solo.reports import Trained

Watch = Callable[[Trained, float], None]
"""Told after each chunk the counts so far and the share of the text that was read."""


def train(
    corpus: Corpus,
    job: Progress,
    spec: ModelSpec,
    *,
    device: torch.device,
    workers: int,
    progress: Watch,
    should_stop: Callable[[], bool],
) -> Trained:
    """Learn what is left of a text."""
    report = Trained(corpus.name, corpus.size, chunks_known=len(job.known))
    if job.complete:
        return report
    english.warm_up(spec)  # loading is no part of the time that learning takes
    started = time.monotonic()
    numbers: deque[int] = deque()  # of the chunks that are being parsed

    def new() -> Iterator[list[Sentence]]:
        for number, chunk in enumerate(chunks(corpus.sentences(max_chars(spec)))):
            if number not in job.known:
                numbers.append(number)
                yield chunk

    for parsed in parse_chunks(new(), spec, workers):
        job.learn(numbers.popleft(), learn(parsed.sequences, spec, device))
        report.chunks += 1
        report.sentences += parsed.sentences
        report.sequences += len(parsed.sequences)
        report.skips.update(parsed.skips)
        progress(report, corpus.share)
        if should_stop():
            report.interrupted = True
            break
    if not report.interrupted:
        job.finish()
    report.seconds = time.monotonic() - started
    return report
