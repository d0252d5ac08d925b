"""Those who have a text learned and read it all the while, in a swarm in which some lie.

The text is learned again and again, each time as other jobs and led by somebody who trusts nobody
yet. A row that is read is right if it is a sum of whole chunks that were given to be learned, none
of them more often than that: whatever was made up, taken away, changed or put in its place is no
such sum. That is looked at for each row.
"""

import asyncio
import logging
import random
from collections import Counter
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from giaann_p2p.client.session import Session
from giaann_p2p.client.training import Trainer, TrainOptions
from giaann_p2p.model.rows import Neuron, Row
from giaann_p2p.model.spec import CHUNK
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.node.reading.reader import RowReader
from giaann_p2p.solo.corpus import opened
from giaann_p2p.solo.jobs import job_id
from giaann_p2p.swarm.reading.row_vote import Verify
from tests.e2e.material import WIKI, Wiki

_AT_ONCE = 8
_READ_PAUSE, _ANEW = 0.05, 10.0
"""Seconds; and those after which all readers but the first know no longer who has lied: so liars
are asked all the time, and found out by the first one, which takes somewhat longer."""


class _Named(logging.Handler):
    """Counts who is complained of: their names come first."""

    def __init__(self, counts: Counter[str]) -> None:
        super().__init__()
        self._counts = counts

    def emit(self, record: logging.LogRecord) -> None:
        assert isinstance(record.args, tuple)
        self._counts[str(record.args[0])] += 1


@dataclass
class Figures:
    """What came of it."""

    rounds: int = 0
    chunks: int = 0
    asked: int = 0
    served: int = 0
    rows: int = 0
    compared: int = 0
    behind: int = 0
    """Rows that told less than was committed when they were asked for."""
    slowest: float = 0.0
    longest: float = 0.0
    """What the slowest round took."""
    liars: Counter[str] = field(default_factory=Counter)
    """Compute peers that were named as such."""
    avoided: Counter[str] = field(default_factory=Counter)
    """Storage peers that were found to tell wrong rows."""
    unserved: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.chunks} chunks committed in {self.rounds} rounds, the longest of"
            f" {self.longest:.1f} s; named as liars: {dict(self.liars)}\n"
            f"{self.served} of {self.asked} reads served, the slowest in {self.slowest:.3f} s:"
            f" {self.rows} rows, {len(self.wrong)} of them wrong, {self.behind} behind, told"
            f" {self.compared} times; shunned: {dict(self.avoided)}"
        )


class Honest:
    """See the module."""

    def __init__(
        self, visiting: Session, wiki: Wiki, folder: Path, seed: int, figures: Figures
    ) -> None:
        self.figures = figures
        self._visiting, self._wiki, self._folder = visiting, wiki, folder
        self._seed, self._known = seed, wiki.telling()
        self._given = [0] * len(wiki.deltas)
        self._committed = [0] * len(wiki.deltas)
        self._over = asyncio.Event()
        self._log = logging.Logger("readers")
        self._log.addHandler(_Named(figures.avoided))

    def end(self) -> None:
        """Come to an end; what was begun is finished."""
        self._over.set()

    async def teach(self) -> None:
        """Have the text learned again and again."""
        while not self._over.is_set():
            await self.learn()

    async def learn(self) -> None:
        """Have the text learned once more, as jobs that nobody knows yet."""
        figures, wiki = self.figures, self._wiki
        figures.rounds += 1
        text = self._folder / f"{figures.rounds}.txt"
        text.write_text(WIKI.read_text() + "\n" * figures.rounds)
        self._given = [times + 1 for times in self._given]
        trainer, began = Trainer(self._visiting), _now()
        try:
            reports = await trainer.train(text, TrainOptions())
        finally:
            await trainer.close()
        figures.longest = max(figures.longest, _now() - began)
        for report in reports:
            assert report.complete, report
            figures.liars.update(report.liars)
            with opened(text) as corpus:
                job = job_id(corpus, report.epoch, wiki.twin.spec, CHUNK)
            for number in range(len(wiki.deltas)):
                wiki.committed(job, number, number)
                self._committed[number] += 1
            figures.chunks += len(wiki.deltas)

    async def read(self, number: int) -> None:
        """Read and read; more than one may at once."""
        chance = random.Random(f"{self._seed} {number}")
        while not self._over.is_set():
            reading = self._reading()
            until = _now() + _ANEW if number else inf
            try:
                while _now() < until and not self._over.is_set():
                    await self._rows(reading, chance.sample(self._known, _AT_ONCE))
                    await asyncio.sleep(_READ_PAUSE)
            finally:
                self.figures.compared += reading.compared
                await reading.close()

    def _reading(self) -> RowReader:
        visiting = self._visiting
        return RowReader(
            visiting.place.transport,
            visiting.manifest,
            visiting.lookout.view,
            visiting.clock,
            verify=Verify(share=1.0),
            log=self._log,
        )

    async def _rows(self, reading: RowReader, neurons: list[Neuron]) -> None:
        figures, known, began = self.figures, list(self._committed), _now()
        figures.asked += 1
        try:
            rows = await reading.rows(neurons)
        except Unreachable as error:
            figures.unserved.append(str(error))
            return
        figures.served += 1
        figures.slowest = max(figures.slowest, _now() - began)
        for neuron, row in zip(neurons, rows, strict=True):
            self._check(neuron, row, known)

    def _check(self, neuron: Neuron, row: Row | None, known: list[int]) -> None:
        self.figures.rows += 1
        times = self._wiki.times(neuron, row)
        if times is None or any(n > most for n, most in zip(times, self._given, strict=True)):
            self.figures.wrong.append(f"{neuron}: {row}, {times} times of {self._given}")
            return
        held = self._wiki.holds(neuron)
        self.figures.behind += any(times[chunk] < known[chunk] for chunk in held)


def _now() -> float:
    return asyncio.get_running_loop().time()
