"""Learns a text into a brain, chunk by chunk: resumable, interruptible, idempotent.

The store applies each chunk durably, and atomically records it as applied, before the next one. So
learning resumes where it stopped, no matter what interrupted it.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator

from giaann_p2p.model.parse import chunks
from giaann_p2p.model.profile import AnyProfile
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
    profile: AnyProfile,
    size: int,
    *,
    workers: int,
    progress: Watch,
    should_stop: Callable[[], bool],
) -> Trained:
    """Learn the chunks of a text, each of `size` sentences, that were not learned before."""
    report = Trained(corpus.name, corpus.size, chunks_known=len(job.known), unit=profile.unit)
    if job.complete:
        return report
    profile.warm_up()  # before the clock starts: loading does not count as learning time
    started = time.monotonic()
    numbers: deque[int] = deque()  # the numbers of the chunks that are being parsed

    def new() -> Iterator[list[Sentence]]:
        texts = profile.texts(corpus.blocks(), corpus.name)
        for number, chunk in enumerate(chunks(texts, size)):
            if number not in job.known:
                numbers.append(number)
                yield chunk

    for learned in profile.learned(new(), workers):
        job.learn(numbers.popleft(), learned.delta)
        report.chunks += 1
        report.sentences += learned.sentences
        report.sequences += learned.sequences
        report.skips.update(learned.skips)
        progress(report, corpus.share)
        if should_stop():
            report.interrupted = True
            break
    if not report.interrupted:
        job.finish()
    report.seconds = time.monotonic() - started
    return report
