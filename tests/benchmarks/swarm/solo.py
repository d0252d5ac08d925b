"""One machine alone: a brain with a durable store on the disk, in this process, on one core."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from giaann_p2p.errors import PromptError
from giaann_p2p.model import english
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.solo.brain import Brain
from tests.benchmarks.swarm.said import Said


class Solo:
    """See the module; `solo` makes one."""

    def __init__(self, brain: Brain) -> None:
        self._brain = brain

    def train(self, text: str, epochs: int) -> float:
        """Return sentences a second."""
        began = time.perf_counter()
        reports = self._brain.train(text, epochs=epochs)
        return sum(one.sentences for one in reports) / (time.perf_counter() - began)

    def ask(self, prompts: Sequence[str], most: int, at_once: bool = False) -> Said:
        """Answer prompts, one after the other; `at_once`: all of them were asked at first."""
        began, said = time.perf_counter(), Said()
        for prompt in prompts:
            said.add(self._asked(prompt, most, began if at_once else time.perf_counter()))
        said.seconds = time.perf_counter() - began
        return said

    def answerable(self, prompts: Sequence[str], least: int, most: int) -> list[str]:
        """Return those that so many tokens come to mind to, at least."""
        return [prompt for prompt in prompts if self._tokens(prompt, most) >= least]

    def _asked(self, prompt: str, most: int, since: float) -> Said:
        texts, times = [], []
        for token in self._brain.stream(prompt, max_tokens=most):
            times.append(time.perf_counter())
            texts.append(token.text)
        return Said(
            tokens=len(texts),
            texts=["".join(texts)],
            first=[times[0] - since],
            answers=[times[-1] - since],
            token_seconds=[after - before for before, after in pairwise(times)],
        )

    def _tokens(self, prompt: str, most: int) -> int:
        try:
            return len(self._brain.generate(prompt, max_tokens=most).tokens)
        except PromptError:  # it is no text, or nothing was learned
            return 0


@contextmanager
def solo() -> Iterator[Solo]:
    """Have a brain in a temporary folder, with all loaded that takes seconds."""
    with (
        TemporaryDirectory(prefix="giaann-solo-") as folder,
        Brain.open(Path(folder, "brain"), ModelSpec(), device="cpu") as brain,
    ):
        english.warm_up(brain.spec)
        yield Solo(brain)
