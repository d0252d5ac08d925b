"""Learning a text into a brain, chunk by chunk: resumable, interruptible, idempotent.

The job's name is a digest of the text, the chunking, the model and the epoch, so the same text is
the same job wherever it lies. Its chunks are learned in order; the brain remembers how many.
"""

import hashlib
import time
from collections.abc import Callable
from itertools import islice

import msgspec
import torch

from giaann_p2p.model import english
from giaann_p2p.model.learn import learn
from giaann_p2p.model.parse import CHUNK, chunks, max_chars, parse_chunks
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.solo.corpus import Corpus
from giaann_p2p.solo.memory import Job, Memory
from giaann_p2p.solo.reports import Trained

Progress = Callable[[Trained, float], None]
"""Told after each chunk the counts so far and the share of the text that was read."""


def job_id(corpus: Corpus, epoch: int, spec: ModelSpec) -> str:
    """Name the job of learning a text for the n-th time."""
    parts = f"giaann job\0{corpus.digest}\0{epoch}\0{CHUNK}\0{spec.digest}"
    return hashlib.blake2b(parts.encode(), digest_size=16).hexdigest()


def train(
    corpus: Corpus,
    epoch: int,
    memory: Memory,
    spec: ModelSpec,
    *,
    device: torch.device,
    workers: int,
    progress: Progress,
    should_stop: Callable[[], bool],
    learned: Callable[[], None],
) -> Trained:
    """Learn what is left of a text; `learned` is called after each chunk."""
    identity = job_id(corpus, epoch, spec)
    job = memory.jobs.get(identity) or Job(name=corpus.name, epoch=epoch)
    report = Trained(corpus.name, corpus.size, chunks_known=job.chunks)
    if job.complete:
        return report
    english.warm_up(spec)  # loading is no part of the time that learning takes
    started = time.monotonic()
    new = islice(chunks(corpus.sentences(max_chars(spec))), job.chunks, None)
    for parsed in parse_chunks(new, spec, workers):
        job = msgspec.structs.replace(job, chunks=job.chunks + 1)
        memory.learn(identity, job, learn(parsed.sequences, spec, device))
        report.chunks += 1
        report.sentences += parsed.sentences
        report.sequences += len(parsed.sequences)
        report.skips.update(parsed.skips)
        progress(report, corpus.share)
        if should_stop():
            report.interrupted = True
            break
        learned()
    if not report.interrupted:
        memory.note(identity, msgspec.structs.replace(job, complete=True))
    report.seconds = time.monotonic() - started
    return report
