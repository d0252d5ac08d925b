"""The single-machine brain, as Python sees it.

A brain in memory: `Brain()`. One in a directory: `Brain.open("my-brain")`; what it learns is saved
when a text is done, once a minute, and when the brain is closed.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from giaann_p2p.errors import PromptError, UsageError
from giaann_p2p.model import device as devices
from giaann_p2p.model.board import Variant
from giaann_p2p.model.delta import Delta
from giaann_p2p.model.evaluate import Feed, Score, score_sequence
from giaann_p2p.model.generate import Beam, Mind
from giaann_p2p.model.ids import PRIME
from giaann_p2p.model.parse import Parser, chunks, max_chars
from giaann_p2p.model.rows import DeltaRows, run
from giaann_p2p.model.spec import UNITS, ModelSpec
from giaann_p2p.solo import database
from giaann_p2p.solo.answer import Answer, timings
from giaann_p2p.solo.corpus import Corpus, Source, opened
from giaann_p2p.solo.memory import Memory
from giaann_p2p.solo.recall import Recalled, recall
from giaann_p2p.solo.reports import Connection, Generation, Info, Trained
from giaann_p2p.solo.training import Progress, train

SAVE_EVERY = 60.0
"""Seconds of learning between two saves of an unfinished text."""

_LARGE = 8 << 20
"""From this size on a text is parsed in several processes, which take seconds to start."""


class Brain:
    """Learns from texts in any order, and goes on with what it is prompted with."""

    def __init__(self, spec: ModelSpec | None = None, device: str = "auto") -> None:
        """Make an empty brain in memory."""
        self._spec = spec or ModelSpec()
        self._memory = Memory()
        self._device = devices.resolve(device)
        self._directory: Path | None = None
        self._sealed = ""  # why it does not learn
        self._held = ExitStack()

    @classmethod
    def open(
        cls,
        directory: str | Path,
        spec: ModelSpec | None = None,
        device: str = "auto",
        readonly: bool = False,
    ) -> Self:
        """Open the brain in a directory, or make one there unless `readonly`."""
        brain, path = cls(spec, device), Path(directory)
        try:
            brain._directory = path
            if readonly:
                brain._sealed = "this brain was opened for reading only"
            else:
                brain._held.enter_context(database.locked(path))
            if readonly or database.exists(path):
                brain._load(path, spec)
        except BaseException:
            brain.close()
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
        where, known = self._directory or "memory", self.knowledge
        return f"<Brain in {where}: {known.neurons:,} neurons, {known.connections:,} connections>"

    def close(self) -> None:
        """Let go of the directory. Everything learned is saved already; it learns no more."""
        self._sealed = self._sealed or "this brain is closed"
        self._held.close()

    @property
    def spec(self) -> ModelSpec:
        """The model's parameters."""
        return self._spec

    @property
    def knowledge(self) -> Delta:
        """All that was learned."""
        return self._memory.knowledge

    def train(
        self,
        *sources: Source,
        epochs: int = 1,
        workers: int = 1,
        progress: Progress = lambda _counts, _share: None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> list[Trained]:
        """Learn texts: strings, or the files that paths name.

        A text is learned once however often it is given, and an interrupted one is taken up where
        it was left; `epochs` learns it that many times. `workers` is the number of parsing
        processes (0: one for a small text, else one a core; with more than one, a script has to
        guard its main part by `if __name__ == "__main__":`, as multiprocessing asks for).
        `should_stop` is asked after each chunk; what was learned until then is kept.
        """
        if self._sealed:
            raise UsageError(self._sealed)
        if epochs < 1 or workers < 0:
            raise UsageError(f"epochs must be 1 or more ({epochs}), workers 0 or more ({workers})")
        reports: list[Trained] = []
        for source in sources:
            with opened(source) as corpus:
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
    ) -> Answer:
        """Go on from a prompt: iterate over the answer for its tokens."""
        return Answer(
            prompt,
            DeltaRows(self.knowledge),
            self._parser,
            self.spec,
            max_tokens=max_tokens,
            timing=timing,
            beam=beam,
            variant=variant,
            device=self._device,
        )

    def generate(
        self,
        prompt: str,
        *,
        max_tokens: int = 80,
        timing: str = "auto",
        beam: Beam | None = None,
        variant: Variant | None = None,
    ) -> Generation:
        """Go on from a prompt, for at most `max_tokens` tokens."""
        return self.stream(
            prompt, max_tokens=max_tokens, timing=timing, beam=beam, variant=variant
        ).all()

    def evaluate(
        self,
        source: Source,
        *,
        seed_tokens: int | None = None,
        timing: str = "auto",
        feed: str = "true",
        variant: Variant | None = None,
        progress: Callable[[Score, float], None] = lambda _counts, _share: None,
    ) -> Score:
        """Measure top-1 accuracy on a text; see `Score`."""
        if feed not in set(Feed):
            raise UsageError(f"no feed {feed!r}; there are {', '.join(Feed)}")
        score, chosen, way = Score(), timings(timing), Feed(feed)
        seed = self.spec.seed_tokens if seed_tokens is None else seed_tokens
        if seed < 1:
            raise UsageError(f"seed_tokens must be 1 or more: {seed}")
        rows, mind = DeltaRows(self.knowledge), Mind(self.spec, chosen, variant, self._device)
        with opened(source) as corpus:
            for chunk in chunks(corpus.sentences(max_chars(self.spec))):
                for parsed in self._parser.parse([chunk]):
                    started = time.perf_counter()
                    for sequence in parsed.sequences:
                        run(score_sequence(mind, sequence, seed, way, score), rows)
                        mind.forget()
                    score.seconds += time.perf_counter() - started
                progress(score, corpus.share)
        return score

    def recall(
        self,
        source: Source,
        *,
        words: int | None = None,
        timing: str = "auto",
        progress: Callable[[Recalled, float], None] = lambda _counts, _share: None,
    ) -> Recalled:
        """Count the sentences of a text that the brain completes from their first words alone."""

        def answer(prompt: str) -> Generation:
            try:
                return self.generate(prompt, max_tokens=self.spec.max_tokens, timing=timing)
            except PromptError:  # the first words name no concept
                return Generation(prompt, [])

        count = self.spec.seed_tokens if words is None else words
        if count < 1:
            raise UsageError(f"words must be 1 or more: {count}")
        with opened(source) as corpus:
            sentences = corpus.sentences(max_chars(self.spec))
            return recall(
                sentences,
                self._parser,
                count,
                answer,
                lambda counts: progress(counts, corpus.share),
            )

    def connections(self) -> Iterator[Connection]:
        """Iterate over all connections, by name."""
        known = self.knowledge
        names = [
            (known.names[concept], None if feature == PRIME else known.names[feature])
            for concept, feature in zip(known.concept.tolist(), known.feature.tolist(), strict=True)
        ]
        fields = (known.source, known.target, known.branch, known.segment, known.strength)
        for source, target, branch, segment, units in zip(
            *(f.tolist() for f in fields), strict=True
        ):
            (concept, feature), (to_concept, to_feature) = names[source], names[target]
            strength = round(units / UNITS, 4)
            yield Connection(
                concept, feature, to_concept, to_feature, branch, segment, strength, units
            )

    def info(self) -> Info:
        """Count what the brain holds."""
        known = self.knowledge
        return Info(
            spec=self.spec,
            digest=known.digest(),
            columns=len(np.unique(known.concept)),
            neurons=known.neurons,
            connections=known.connections,
            occurrences=int(known.count.sum()),
            words=len(known.names),
            texts=list(self._memory.jobs.values()),
            file_bytes=database.size(self._directory) if self._directory else 0,
        )

    @cached_property
    def _parser(self) -> Parser:
        return Parser(self.spec)

    def _load(self, directory: Path, spec: ModelSpec | None) -> None:
        state = database.load(directory)
        if spec is not None and spec != state.spec:
            differences = "; ".join(spec.differences(state.spec))
            raise UsageError(f"the brain in {directory} has another model: {differences}")
        self._spec, self._memory = state.spec, Memory(state.knowledge, state.jobs)

    def _train(
        self,
        corpus: Corpus,
        epoch: int,
        workers: int,
        progress: Progress,
        should_stop: Callable[[], bool],
    ) -> Trained:
        with self._saving() as save_if_due:
            return train(
                corpus,
                epoch,
                self._memory,
                self.spec,
                device=self._device,
                workers=workers or ((os.cpu_count() or 1) if corpus.size >= _LARGE else 1),
                progress=progress,
                should_stop=should_stop,
                learned=save_if_due,
            )

    @contextlib.contextmanager
    def _saving(self) -> Iterator[Callable[[], None]]:
        """Save now and then, when asked, and in the end, also behind an error."""
        before, saved, pause = self._memory.learned, time.monotonic(), SAVE_EVERY

        def save_if_due() -> None:
            nonlocal saved, pause
            started = time.monotonic()
            if started - saved > pause:
                self._save()
                saved = time.monotonic()
                pause = max(SAVE_EVERY, 10 * (saved - started))  # a large brain takes its time

        try:
            yield save_if_due
        finally:
            if self._memory.learned is not before:
                self._save()

    def _save(self) -> None:
        if self._directory is not None:
            state = database.State(self.spec, self._memory.knowledge, self._memory.jobs)
            database.save(self._directory, state)
