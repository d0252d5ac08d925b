"""Leading those who learn a text, once through it: `swarm.coordinator`, alive, with the text.

Whoever runs it lets it `tick` a few times a second; it ends with the text, and leaves what is in
flight to those who have it.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np
from pyroaring import BitMap

from giaann_p2p.client.pages import Pages
from giaann_p2p.client.trained import GivenUp, Taught
from giaann_p2p.model.ids import word_id
from giaann_p2p.model.parse import Reason
from giaann_p2p.model.sequence import Ids
from giaann_p2p.model.text import Sentence
from giaann_p2p.node.calls import Calls
from giaann_p2p.swarm.actions import Call
from giaann_p2p.swarm.chunks import State
from giaann_p2p.swarm.coordinator import Act, Coordinator, Lied, Over
from giaann_p2p.swarm.identity import Peer, name_of
from giaann_p2p.swarm.jury import Jury
from giaann_p2p.swarm.messages import Beat, Learned, Message
from giaann_p2p.swarm.overlap import sketch
from giaann_p2p.swarm.policy import AtRandom, LeastOverlap
from giaann_p2p.swarm.schedule import Schedule
from giaann_p2p.swarm.trust import Trust

_MOST_EARLY = 1 << 16
_LONG_WORD = 4


class Tally:
    """Counts what is learned into a report, each chunk once."""

    def __init__(self, report: Taught) -> None:
        self.report = report
        self._counted = BitMap()

    def __repr__(self) -> str:
        return f"<Tally of {len(self._counted):,} chunks>"

    def count(self, learned: Learned, sentences: Sequence[Sentence]) -> None:
        """Count a chunk; what a worker says of it is only believed as far as it can be."""
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


class Leading:
    """See the module."""

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
        jury: Jury,
        trust: Trust,
    ) -> None:
        """`news` is set when there is some."""
        self.pages = pages
        self.over = False
        self._schedule, self._policy = schedule, policy
        self._coordinator = Coordinator(job, schedule, pages.texts, jury, trust)
        self._calls, self._clock, self._tally, self._news = calls, clock, tally, news
        self._early: dict[int, Learned] = {}  # said of chunks that were not read yet
        self._lines: dict[int, int] = {}  # of chunks that were given up

    def __repr__(self) -> str:
        return f"<Leading: {self._schedule!r}>"

    @property
    def working(self) -> int:
        """How many compute peers have a chunk."""
        return self._schedule.working

    @property
    def committed(self) -> int:
        """How many chunks are learned, of those that were read."""
        return len(self._schedule.chunks(State.COMMITTED) & BitMap(range(self.pages.read)))

    @property
    def done(self) -> Mapping[Peer, BitMap]:
        """The chunks of which each was the first to say that they are with their owners."""
        return self._coordinator.done

    async def read(self) -> None:
        """Read the text to its end, as fast as it is learned."""
        while not self.pages.ended:
            chunk = await self.pages.next()
            if chunk is not None:
                self._has_read(chunk)
            self._do(self._coordinator.read(self.pages.read, self.pages.ended, self._clock()))
            self._news.set()

    def tick(self, workers: Mapping[Peer, int], announced: Iterable[Peer]) -> None:
        """Do what is due; `announced`: those who have said anew that they are there."""
        now = self._clock()
        self._do(self._coordinator.seen(workers, now))
        for peer in announced:
            self._do(self._coordinator.announced(peer, now))
        self._do(self._coordinator.tick(now))
        for chunk in self._schedule.chunks(State.FAILED):
            if chunk in self.pages:  # so that there is room to read on
                self._lines[chunk] = self._forget(chunk)[0].line

    def lost(self, peer: Peer) -> None:
        """A worker cannot be reached."""
        self._do(self._coordinator.lost(peer, self._clock()))

    def beat(self, peer: Peer, beat: Beat) -> Message:
        """Hear of a worker."""
        answer, acts = self._coordinator.beat(peer, beat, self._clock())
        self._do(acts)
        self._news.set()
        return answer

    def _do(self, acts: Sequence[Act]) -> None:
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
    """Return the longer words of a chunk as numbers: they tell well enough what it is about."""
    words = {word for text in sentences for word in text.lower().split() if len(word) >= _LONG_WORD}
    return np.array(sorted(map(word_id, words)), np.uint64)
