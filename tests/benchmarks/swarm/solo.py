"""One machine alone: a brain with a durable store on the disk, in this process, on one core."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from giaann_p2p.errors import PromptError
from giaann_p2p.model import english
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

    def ask(self, prompts: Sequence[str], most: int) -> Said:
        """Answer prompts, one after the other."""
        began, said = time.perf_counter(), Said()
        for prompt in prompts:
            asked = last = time.perf_counter()
            tokens = 0
            answer = self._brain.stream(prompt, max_tokens=most)
            words = []
            for token in answer:
                now = time.perf_counter()
                if tokens:
                    said.token_seconds.append(now - last)
                else:
                    said.first.append(now - asked)
                tokens, last = tokens + 1, now
                words.append(token.text)
            said.texts.append("".join(words))
            said.tokens += tokens
        said.seconds = time.perf_counter() - began
        return said

    def answerable(self, prompts: Sequence[str], least: int, most: int) -> list[str]:
        """Return those that so many tokens come to mind to, at least."""
        return [prompt for prompt in prompts if self._tokens(prompt, most) >= least]

    def _tokens(self, prompt: str, most: int) -> int:
        try:
            return len(self._brain.generate(prompt, max_tokens=most).tokens)
        except PromptError:  # it names no concept
            return 0


@contextmanager
def solo() -> Iterator[Solo]:
    """Have a brain in a temporary folder, with all loaded that takes seconds."""
    with (
        TemporaryDirectory(prefix="giaann-solo-") as folder,
        Brain.open(Path(folder, "brain"), device="cpu") as brain,
    ):
        english.warm_up(brain.spec)
        yield Solo(brain)
