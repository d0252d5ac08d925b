"""Learns a text into a brain, chunk by chunk: resumable, interruptible, idempotent.

The store applies each chunk durably, and atomically records it as applied, before the next one. So
learning resumes where it stopped, no matter what interrupted it.
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
"""A function that is called after each chunk, with the counts so far and the share of the text
read."""


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
    """Learn the chunks of a text that were not learned before."""
    report = Trained(corpus.name, corpus.size, chunks_known=len(job.known))
    if job.complete:
        return report
    english.warm_up(spec)  # before the clock starts: loading does not count as learning time
    started = time.monotonic()
    numbers: deque[int] = deque()  # the numbers of the chunks that are being parsed

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
