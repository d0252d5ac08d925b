"""Measures recall: the brain is prompted with only the first words of each sentence of a text.

It recalls a sentence if its answer is the rest of the sentence, to the last word.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from giaann_p2p.model.parse import Parser
from giaann_p2p.model.render import Renderer
from giaann_p2p.model.said import Generation
from giaann_p2p.model.sequence import Sequences
from giaann_p2p.model.text import Sentence

_WORD = re.compile(r"\S+")


@dataclass
class Recalled:
    """The number of recalled sentences, and the sentences that were missed."""

    sentences: int = 0
    recalled: int = 0
    too_short: int = 0
    """The number of sentences with nothing after the words of the prompt; they do not count."""
    skipped: int = 0
    """The number of sentences that learning skips, too; they do not count."""
    missed: list[tuple[str, str, str]] = field(default_factory=list)
    """For each sentence not recalled: the prompt, the rest, and the answer."""

    @property
    def share(self) -> float:
        """The share of recalled sentences, from 0 to 1."""
        return self.recalled / self.sentences if self.sentences else 0.0


def recall(
    sentences: Iterable[Sentence],
    parser: Parser,
    words: int,
    answer: Callable[[str], Generation],
    progress: Callable[[Recalled], None] = lambda _: None,
) -> Recalled:
    """Prompt with the first `words` words of each trainable sentence that is longer than that."""
    result = Recalled()
    for sentence in sentences:
        (parsed,) = parser.parse([[sentence]])
        spans = [match.end() for match in _WORD.finditer(sentence.text)]
        if not len(parsed.sequences):
            result.skipped += 1
            continue
        if len(spans) <= words:
            result.too_short += 1
            continue
        prompt = sentence.text[: spans[words - 1]]
        rest = rest_of(prompt, parsed.sequences)
        if not rest.strip():
            result.too_short += 1
            continue
        said = answer(prompt).text
        result.sentences += 1
        result.recalled += said == rest
        if said != rest:
            result.missed.append((prompt, rest, said))
        progress(result)
    return result


def rest_of(prompt: str, sequence: Sequences) -> str:
    """Return the rest of a sentence after a prompt that it begins with, rendered as text."""
    ends = sequence.end.tolist()
    first = next((i for i, end in enumerate(ends) if end > len(prompt)), len(ends))
    if first == len(ends):
        return ""
    begun = prompt[ends[first - 1] if first else 0 :].strip()
    words = sequence.words[first:]
    renderer, lacking = Renderer(prompt), ""
    if begun:  # the prompt ends within a merged word: render the rest of that word first
        lacking = renderer.complete(words.pop(0)[len(begun) :])
    return lacking + "".join(map(renderer.append, words))
