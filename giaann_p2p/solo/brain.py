"""The Python interface of the single-machine brain.

`Brain()` is a brain in memory, `Brain.open("my-brain")` one in a directory. The latter writes each
chunk that it learns to the disk, durably, before it continues.
"""

import os
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from giaann_p2p.errors import PromptError, UsageError
from giaann_p2p.model import device as devices
from giaann_p2p.model.delta import Delta
from giaann_p2p.model.digest import readable
from giaann_p2p.model.evaluate import Feed, Score
from giaann_p2p.model.halves import Halves
from giaann_p2p.model.ids import PRIME
from giaann_p2p.model.manner import Beam, Manner, Sampling, Variant
from giaann_p2p.model.parse import chunks
from giaann_p2p.model.profile import AnyProfile, Measure
from giaann_p2p.model.profiles import profile_of
from giaann_p2p.model.prompt import checked_prompt
from giaann_p2p.model.rows import never, run
from giaann_p2p.model.said import Generation
from giaann_p2p.model.sequence import Names
from giaann_p2p.model.spec import UNITS, ModelSpec
from giaann_p2p.model.traits import traits_of
from giaann_p2p.model.usual import new_spec
from giaann_p2p.solo.answer import Answer
from giaann_p2p.solo.corpus import Corpus, opened
from giaann_p2p.solo.directory import existing
from giaann_p2p.solo.giaannpy import learning, reading, writing
from giaann_p2p.solo.jobs import Progress, job_id, jobs
from giaann_p2p.solo.recall import Recalled, recall
from giaann_p2p.solo.recent_rows import RecentRows
from giaann_p2p.solo.reports import Connection, Info, Trained
from giaann_p2p.solo.source import Source
from giaann_p2p.solo.training import Watch, train
from giaann_p2p.store import home
from giaann_p2p.store.cut_columns import columns_in
from giaann_p2p.store.disk.files import DiskFiles
from giaann_p2p.store.fsck import Checked, fsck
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.store import Store
from giaann_p2p.store.whole_rows import whole_rows

_LARGE = 8 << 20
"""The least size in bytes of a text that is parsed in several processes, which start slowly."""


_SHARDS = 16
"""The number of shards of a brain: fewer than in a swarm, because each text adds a set of chunks to
every shard. Digests do not depend on the number of shards."""


class Brain:
    """A brain: it learns texts, in any order, and continues prompts."""

    def __init__(self, spec: ModelSpec | None = None, device: str = "auto") -> None:
        """Make an empty brain in memory; the default model is that of the profile `subwords`."""
        self._device = devices.resolve(device)
        self._directory: Path | None = None
        spec = spec or new_spec()
        self._store = _whole(Store.in_memory(spec, _layout(spec)))

    @classmethod
    def open(
        cls,
        directory: str | Path,
        spec: ModelSpec | None = None,
        device: str = "auto",
        readonly: bool = False,
        create: bool = True,
    ) -> Self:
        """Open the brain in a directory; if there is none, create one as `Brain()` does.

        NoStore if there is no brain, and `readonly` is true or `create` is false.
        """
        brain, path = cls(spec, device), Path(directory)
        brain._directory = path if create and not readonly else existing(path)
        brain._store = _store(path, spec, readonly)
        if not readonly:
            try:
                _whole(brain._store)
            except BaseException:
                brain._store.close()
                raise
        return brain

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        where, known = self._directory or "memory", self._store.statistics()
        return f"<Brain in {where}: {known.rows:,} neurons, {known.connections:,} connections>"

    def close(self) -> None:
        """Close the store. Everything learned is already saved; the brain cannot learn any more."""
        self._store.close()

    @property
    def spec(self) -> ModelSpec:
        """The parameters of the model."""
        return self._store.spec

    @property
    def store(self) -> Store:
        """The store with all knowledge; any thread may read it, even while the brain learns."""
        return self._store

    @property
    def knowledge(self) -> Delta:
        """All learned knowledge, copied into a delta."""
        return self._store.knowledge()

    def train(
        self,
        *sources: Source,
        epochs: int = 1,
        workers: int = 1,
        name: str = "",
        progress: Watch = lambda _counts, _share: None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> list[Trained]:
        """Learn texts: strings, or files given by their paths.

        A text is learned once, however often it is given, and an interrupted text is resumed; with
        `epochs`, it is learned that many times. `workers` is the number of parsing processes (0:
        one for a small text, else one per core; with more than one, a script must guard its main
        part by `if __name__ == "__main__":`, as multiprocessing requires). `name` replaces the name
        of the file. `should_stop` is called after each chunk; if it returns true, learning ends,
        and the chunks learned so far are kept.
        """
        if epochs < 1 or workers < 0:
            raise UsageError(f"epochs must be 1 or more ({epochs}), workers 0 or more ({workers})")
        reports: list[Trained] = []
        for source in sources:
            with opened(source) as corpus:
                corpus.name = name or corpus.name
                for epoch in range(1, epochs + 1):
                    report = self._train(corpus, epoch, workers, progress, should_stop)
                    reports.append(report)
                    if report.interrupted:
                        return reports
        return reports

    def stream(
        self,
        prompt: str,
        *,
        max_tokens: int = 80,
        timing: str = "auto",
        beam: Beam | None = None,
        variant: Variant | None = None,
        sampling: Sampling | None = None,
        should_stop: Callable[[], bool] = never,
    ) -> Answer:
        """Continue a prompt; the answer is an iterator over its tokens.

        Timings, beams and variants are for the profile `words`, `sampling` is for `subwords`.
        `should_stop` is called before each step of a token; if it returns true, Abandoned is
        raised.
        """
        manner = Manner(
            max_tokens=max_tokens,
            timing=timing,
            beam=beam,
            variant=variant or Variant(),
            sampling=sampling or Sampling(),
        )
        prompt = checked_prompt(prompt)
        return Answer(prompt, self._rows, self._profile, manner, should_stop)

    def generate(
        self,
        prompt: str,
        *,
        max_tokens: int = 80,
        timing: str = "auto",
        beam: Beam | None = None,
        variant: Variant | None = None,
        sampling: Sampling | None = None,
    ) -> Generation:
        """Continue a prompt by at most `max_tokens` tokens."""
        return self.stream(
            prompt,
            max_tokens=max_tokens,
            timing=timing,
            beam=beam,
            variant=variant,
            sampling=sampling,
        ).all()

    def generate_each(
        self, prompt: str, answers: int, *, max_tokens: int = 80, sampling: Sampling
    ) -> list[Generation]:
        """Return several answers to a prompt, sampled with consecutive seeds."""
        return [
            self.generate(prompt, max_tokens=max_tokens, sampling=one)
            for one in sampling.each(answers)
        ]

    def evaluate(
        self,
        source: Source,
        *,
        seed_tokens: int | None = None,
        timing: str = "auto",
        feed: str = "true",
        variant: Variant | None = None,
        readout: str | None = None,
        bits: bool = False,
        progress: Callable[[Score, float], None] = lambda _counts, _share: None,
    ) -> Score:
        """Measure top-1 accuracy on a text; see `Score`.

        `readout` is for the profile `subwords`: `mix` (the default), `lif-train` or `lif-test`.
        `bits`: also count the bits that the text takes by the probabilities of `mix`; this is slow.
        """
        if feed not in set(Feed):
            raise UsageError(f"no feed is named {feed!r}; choose from {', '.join(Feed)}")
        seed = self.spec.seed_tokens if seed_tokens is None else seed_tokens
        if seed < 1:
            raise UsageError(f"seed_tokens must be 1 or more: {seed}")
        measure = Measure(
            seed_tokens=seed,
            timing=timing,
            feed=Feed(feed),
            variant=variant,
            readout=readout,
            bits=bits,
        )
        evaluation = self._profile.minds().evaluation(measure)
        with opened(source) as corpus:
            for chunk in chunks(self._profile.texts(corpus.blocks(), corpus.name)):
                scoring = evaluation.of(chunk)
                started = time.perf_counter()
                run(scoring.steps, self._rows)
                evaluation.score.seconds += time.perf_counter() - started
                progress(evaluation.score, corpus.share)
        return evaluation.score

    def recall(
        self,
        source: Source,
        *,
        words: int | None = None,
        timing: str = "auto",
        progress: Callable[[Recalled, float], None] = lambda _counts, _share: None,
    ) -> Recalled:
        """Count the sentences of a text that the brain completes when given their first words.

        In the profile `subwords`, texts of up to three sentences are counted instead.
        """

        def answer(halves: Halves) -> str:
            try:
                return self.generate(halves.prompt, max_tokens=halves.most, timing=timing).text
            except PromptError:  # the first words name no concept
                return ""

        count = self.spec.seed_tokens if words is None else words
        if count < 1:
            raise UsageError(f"words must be 1 or more: {count}")
        profile, result = self._profile, Recalled(unit=self._profile.unit)
        with opened(source) as corpus:
            recall(
                profile.texts(corpus.blocks(), corpus.name),
                lambda text: profile.halves(text, count),
                answer,
                result,
                lambda counts: progress(counts, corpus.share),
            )
        return result

    def connections(self) -> Iterator[Connection]:
        """Iterate over all connections, by name, column by column."""
        names = self._store.names()
        if self._is_cut(names):
            yield from _connections(self.knowledge, names)  # a row's parts are in several shards
            return
        for shard in self._store.shards.tolist():
            yield from _connections(self._store.content(shard).delta, names)

    def import_giaannpy(
        self,
        folder: str | Path,
        *,
        round_strengths: bool = False,
        progress: Callable[[float], None] = lambda _share: None,
    ) -> learning.Imported:
        """Add a database of GIAANNpy, the public reference; a known database is not added again.

        `round_strengths`: round each strength that is not a whole count, instead of refusing it.
        """
        return self.add_database(
            reading.read(
                Path(folder), self.spec, round_strengths=round_strengths, progress=progress
            )
        )

    def add_database(self, database: reading.Database) -> learning.Imported:
        """Add a database that was read for this brain's model."""
        if database.spec != self.spec:
            raise UsageError("the database was read for another model; read it for this brain's")
        return learning.learn(self._store, database)

    def export_giaannpy(
        self, folder: str | Path, *, progress: Callable[[float], None] = lambda _share: None
    ) -> writing.Exported:
        """Write all knowledge as a database of GIAANNpy, into a new folder."""
        return writing.write(self.knowledge, self.spec, Path(folder), progress)

    def info(self) -> Info:
        """Return counts of the brain's knowledge."""
        known, names = self._store.statistics(), self._store.names()
        columns, neurons = known.columns, known.rows
        if self._is_cut(names):  # parts must not be counted as columns or words
            whole = self.knowledge
            rows, names = (whole.count > 0) | (whole.lengths > 0), whole.names
            shard = self._store.layout.shards_of(whole.concept, whole.feature)
            pairs = zip(whole.concept[rows].tolist(), shard[rows].tolist(), strict=True)
            columns, neurons = len({*pairs}), int(np.count_nonzero(rows))
        return Info(
            spec=self.spec,
            digest=self.digest(),
            columns=columns,
            neurons=neurons,
            connections=known.connections,
            occurrences=self._profile.occurrences(self._store, known.occurrences),
            words=len(names),
            texts=list(jobs(self._store)),
            file_bytes=self._file_bytes(),
        )

    def digest(self) -> str:
        """Return 64 hex digits: equal for equal knowledge, in any order of learning, else not."""
        return readable(self._store.digest())

    def compact(self) -> tuple[int, int]:
        """Compact all knowledge into one file; return the size in bytes before and after."""
        before = self._file_bytes()
        self._store.compact()
        return before, self._file_bytes()

    @staticmethod
    def check(directory: str | Path) -> Checked:
        """Check the files of a brain: their checksums and digests, and the state they produce."""
        return fsck(DiskFiles(existing(Path(directory))))

    def _is_cut(self, names: Names) -> bool:
        """Return whether any column of the brain, which has these names, is cut into parts."""
        return bool(columns_in(names.values(), self._store.layout.cuts or ()))

    def _file_bytes(self) -> int:
        if self._directory is None:
            return 0
        files = DiskFiles(self._directory)
        return sum(files.size(name) for name in files.names())

    @cached_property
    def _rows(self) -> RecentRows:
        return RecentRows(whole_rows(self._store))

    @cached_property
    def _profile(self) -> AnyProfile:
        return profile_of(self.spec, self._device)

    def _job_id(self, corpus: Corpus, epoch: int) -> bytes:
        return job_id(corpus, epoch, self.spec, self._store.layout.chunk)

    def _train(
        self,
        corpus: Corpus,
        epoch: int,
        workers: int,
        progress: Watch,
        should_stop: Callable[[], bool],
    ) -> Trained:
        return train(
            corpus,
            Progress(self._store, self._job_id(corpus, epoch), corpus.name, epoch),
            self._profile,
            self._store.layout.chunk,
            workers=workers or ((os.cpu_count() or 1) if corpus.size >= _LARGE else 1),
            progress=progress,
            should_stop=should_stop,
        )


def _store(directory: Path, spec: ModelSpec | None, readonly: bool) -> Store:
    if home.exists(DiskFiles(directory)):
        return Store.at(directory, spec, readonly=readonly)
    spec = spec or new_spec()
    return Store.at(directory, spec, _layout(spec), readonly=readonly)


def _layout(spec: ModelSpec) -> Layout:
    return Layout(shards=_SHARDS, blocks=traits_of(spec.profile).blocks)


def _whole(store: Store) -> Store:
    """Make a store hold all shards; return it."""
    store.hold(range(store.layout.shards))
    return store


def _connections(known: Delta, names: Names) -> Iterator[Connection]:
    named = [
        (names[concept], None if feature == PRIME else names[feature])
        for concept, feature in zip(known.concept.tolist(), known.feature.tolist(), strict=True)
    ]
    fields = (known.source, known.target, known.branch, known.segment, known.strength)
    for source, target, branch, segment, units in zip(*(f.tolist() for f in fields), strict=True):
        (concept, feature), (to_concept, to_feature) = named[source], named[target]
        strength = round(units / UNITS, 4)
        yield Connection(concept, feature, to_concept, to_feature, branch, segment, strength, units)
