"""Measures recall: the brain is prompted with only the first words of each text that it learned.

The brain recalls a text if its answer is the exact rest of the text. The profile determines what a
text is: one sentence, or several.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from giaann_p2p.model.halves import Halves
from giaann_p2p.model.text import Sentence


@dataclass
class Recalled:
    """The number of recalled texts, and the texts that were missed."""

    sentences: int = 0
    """The number of texts that the brain was prompted to complete."""
    recalled: int = 0
    too_short: int = 0
    """The number of texts with nothing after the words of the prompt; `sentences` excludes them."""
    skipped: int = 0
    """The number of texts that learning skips, too; `sentences` excludes them."""
    missed: list[tuple[str, str, str]] = field(default_factory=list)
    """For each text not recalled: the prompt, the rest, and the answer."""
    unit: str = "sentences"
    """A plural noun for the texts, as the profile counts them."""

    @property
    def share(self) -> float:
        """The share of recalled texts, from 0 to 1."""
        return self.recalled / self.sentences if self.sentences else 0.0


def recall(
    texts: Iterable[Sentence],
    halves: Callable[[Sentence], Halves | None],
    answer: Callable[[Halves], str],
    result: Recalled,
    progress: Callable[[Recalled], None] = lambda _: None,
) -> None:
    """Prompt with the first words of each text that can be learned; add the counts to `result`.

    `halves` splits a text into prompt and rest, or returns None if learning skips the text.
    """
    for text in texts:
        found = halves(text)
        if found is None:
            result.skipped += 1
            continue
        if not found.rest.strip():
            result.too_short += 1
            continue
        said = answer(found)
        result.sentences += 1
        result.recalled += said == found.rest
        if said != found.rest:
            result.missed.append((found.prompt, found.rest, said))
        progress(result)
