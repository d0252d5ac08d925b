"""Recall: give the brain the first words of each sentence of a text, as free text, nothing else.

It recalls a sentence when what it answers is the rest of it, to the last word.
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
    """How many sentences were recalled, and which were not."""

    sentences: int = 0
    recalled: int = 0
    missed: list[tuple[str, str, str]] = field(default_factory=list)
    """For each sentence not recalled: the prompt, the rest, and the answer."""

    @property
    def share(self) -> float:
        """The share of the sentences that were recalled."""
        return self.recalled / self.sentences if self.sentences else 0.0


def recall(
    sentences: Iterable[Sentence],
    parser: Parser,
    words: int,
    answer: Callable[[str], Generation],
    progress: Callable[[Recalled], None] = lambda _: None,
) -> Recalled:
    """Prompt with the first words of each trainable sentence that is longer."""
    result = Recalled()
    for sentence in sentences:
        (parsed,) = parser.parse([[sentence]])
        spans = [match.end() for match in _WORD.finditer(sentence.text)]
        if not len(parsed.sequences) or len(spans) <= words:
            continue
        prompt = sentence.text[: spans[words - 1]]
        rest = rest_of(prompt, parsed.sequences)
        if not rest.strip():
            continue
        said = answer(prompt).text
        result.sentences += 1
        result.recalled += said == rest
        if said != rest:
            result.missed.append((prompt, rest, said))
        progress(result)
    return result


def rest_of(prompt: str, sequence: Sequences) -> str:
    """Return, as text, what a sentence has beyond a prompt that it begins with."""
    ends = sequence.end.tolist()
    first = next((i for i, end in enumerate(ends) if end > len(prompt)), len(ends))
    if first == len(ends):
        return ""
    begun = prompt[ends[first - 1] if first else 0 :].strip()
    words = sequence.words[first:]
    renderer, lacking = Renderer(prompt), ""
    if begun:  # the prompt ends within a merged word: the joint, then the rest of it
        lacking = renderer.complete(words.pop(0)[len(begun) :])
    return lacking + "".join(map(renderer.append, words))
