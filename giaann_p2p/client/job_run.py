"""One pass over a text, learned by compute peers: the I/O around `swarm.training.coordinator`.

The owner of a run calls `tick` a few times a second. The run is over when the text has been read to
its end and each of its chunks is committed or given up.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np
from pyroaring import BitMap

from giaann_p2p.client.pages import Pages
from giaann_p2p.client.trained import GivenUp, TrainReport
from giaann_p2p.model.ids import word_id
from giaann_p2p.model.parse import Reason
from giaann_p2p.model.sequence import Ids
from giaann_p2p.model.text import Sentence
from giaann_p2p.node.calls import Calls
from giaann_p2p.swarm.training.chunks import ChunkState
from giaann_p2p.swarm.training.coordinator import Coordinator, JobAction, Lied, Over
from giaann_p2p.swarm.training.delta_agreement import DeltaAgreement
from giaann_p2p.swarm.training.overlap import sketch
from giaann_p2p.swarm.training.policy import AtRandom, LeastOverlap
from giaann_p2p.swarm.training.schedule import Schedule
from giaann_p2p.swarm.training.trust import Trust
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.identity import Peer, name_of
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.training_messages import Beat, BeatAck, Learned

_MOST_EARLY = 1 << 16
"""Maximum number of reports held about chunks that have not been read yet."""
_LONG_WORD = 4
"""Minimum number of letters of a word that counts towards a chunk's topic."""


class Tally:
    """Adds up learned chunks in a report, and counts each chunk only once."""

    def __init__(self, report: TrainReport) -> None:
        self.report = report
        self._counted = BitMap()

    def __repr__(self) -> str:
        return f"<Tally of {len(self._counted):,} chunks>"

    def count(self, learned: Learned, sentences: Sequence[Sentence]) -> None:
        """Count a learned chunk, unless it was counted before.

        The worker's figures are not trusted: they are capped by the number of `sentences` of the
        chunk, and skips of sentences that the chunk does not have are ignored.
        """
        report = self.report
        report.given_up.pop(learned.chunk, None)
        if learned.chunk in self._counted:
            return
        self._counted.add(learned.chunk)
        report.chunks += 1
        report.sentences += len(sentences)
        report.sequences += min(learned.sequences, len(sentences))
        report.pushed += learned.pushed
        for skip in learned.skips:
            if skip.reason in set(Reason) and max(skip.first, skip.count - 1) < len(sentences):
                line = sentences[skip.first].line
                report.skips.add(Reason(skip.reason), line, skip.count)


class JobRun:
    """One pass over a text: reads it, leases its chunks to workers, and keeps the report."""

    def __init__(
        self,
        job: bytes,
        pages: Pages,
        schedule: Schedule,
        policy: AtRandom,
        calls: Calls,
        clock: Callable[[], float],
        tally: Tally,
        news: asyncio.Event,
        agreement: DeltaAgreement,
        trust: Trust,
        size: int,
    ) -> None:
        """Prepare; `news` is set when a chunk was read, a worker reported, or the run is over.

        `size`: the number of sentences in a chunk.
        """
        self.pages = pages
        self.over = False
        self._schedule, self._policy = schedule, policy
        self._coordinator = Coordinator(
            job, schedule, pages.texts, agreement, trust, calls.rules, size
        )
        self._calls, self._clock, self._tally, self._news = calls, clock, tally, news
        self._early: dict[int, Learned] = {}  # reports about chunks that have not been read yet
        self._lines: dict[int, int] = {}  # first line of each failed chunk
        self._awaited: dict[Peer, list[Peer]] = {}  # absent storage peers, by worker

    def __repr__(self) -> str:
        return f"<JobRun: {self._schedule!r}>"

    @property
    def working(self) -> int:
        """The number of compute peers that have a chunk to learn."""
        return self._schedule.working

    @property
    def committed(self) -> int:
        """The number of committed chunks among those read so far."""
        return len(self._schedule.chunks(ChunkState.COMMITTED) & BitMap(range(self.pages.read)))

    @property
    def done(self) -> Mapping[Peer, BitMap]:
        """For each compute peer, the chunks that it was the first to report as committed."""
        return self._coordinator.done

    @property
    def awaited(self) -> list[Peer]:
        """The absent storage peers without which the workers' updates cannot be committed."""
        return sorted({peer for said in self._awaited.values() for peer in said})

    async def read(self) -> None:
        """Read the text to its end; pause while too many chunks wait to be learned."""
        while not self.pages.ended:
            chunk = await self.pages.next()
            if chunk is not None:
                self._has_read(chunk)
            self._do(self._coordinator.read(self.pages.read, self.pages.ended, self._clock()))
            self._news.set()

    def tick(self, workers: Mapping[Peer, int], alive: Iterable[Peer]) -> None:
        """Grant and expire leases, and forget failed chunks.

        `workers` maps each present compute peer to its number of slots. `alive` are the compute
        peers that have posted a new record or pulse since the last call.
        """
        now = self._clock()
        self._do(self._coordinator.seen(workers, now))
        self._awaited = {peer: said for peer, said in self._awaited.items() if peer in workers}
        for peer in alive:
            self._do(self._coordinator.announced(peer, now))
        self._do(self._coordinator.tick(now))
        for chunk in self._schedule.chunks(ChunkState.FAILED):
            if chunk in self.pages:  # make room, so that reading can go on
                self._lines[chunk] = self._forget(chunk)[0].line

    def lost(self, peer: Peer) -> None:
        """Handle a worker that cannot be reached: lease its chunks to others."""
        self._do(self._coordinator.lost(peer, self._clock()))

    def beat(self, peer: Peer, beat: Beat) -> Message:
        """Handle a worker's heartbeat; return the answer to it."""
        answer, acts = self._coordinator.beat(peer, beat, self._clock())
        self._do(acts)
        if isinstance(answer, BeatAck):  # the report was not refused
            self._awaited[peer] = beat.awaited
        self._news.set()
        return answer

    def _do(self, acts: Sequence[JobAction]) -> None:
        for act in acts:
            if isinstance(act, Call):
                self._calls.start(act, partial(self._answered, act.number))
            elif isinstance(act, Learned):
                self._learned(act)
            elif isinstance(act, Lied):
                self._tally.report.liars.add(name_of(act.peer))
            else:
                self._over(act)

    def _answered(self, number: int, answer: Message | None) -> None:
        self._do(self._coordinator.answered(number, answer, self._clock()))

    def _has_read(self, chunk: int) -> None:
        if chunk in self._early:
            self._count(self._early.pop(chunk))
        elif chunk in self.pages and isinstance(self._policy, LeastOverlap):
            self._policy.note(chunk, sketch(_words(self.pages.texts(chunk))))

    def _learned(self, learned: Learned) -> None:
        if learned.chunk in self.pages:
            self._count(learned)
        elif learned.chunk >= self.pages.read and len(self._early) < _MOST_EARLY:
            self._early[learned.chunk] = learned

    def _count(self, learned: Learned) -> None:
        self._tally.count(learned, self._forget(learned.chunk))

    def _forget(self, chunk: int) -> Sequence[Sentence]:
        if isinstance(self._policy, LeastOverlap):
            self._policy.forget(chunk)
        return self.pages.forget(chunk)

    def _over(self, over: Over) -> None:
        for chunk, reasons in over.given_up.items():
            if chunk in self.pages:
                self._lines[chunk] = self._forget(chunk)[0].line
            self._tally.report.given_up[chunk] = GivenUp(self._lines[chunk], reasons)
        self.over = True
        self._news.set()


def _words(sentences: Sequence[str]) -> Ids:
    """Return the ids of a chunk's words of 4 letters or more, because these show its topic."""
    words = {word for text in sentences for word in text.lower().split() if len(word) >= _LONG_WORD}
    return np.array(sorted(map(word_id, words)), np.uint64)
