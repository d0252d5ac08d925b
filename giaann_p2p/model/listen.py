"""Reading a prompt: which neurons its words are.

The parse of a prompt is not always the parse of the sentence that it begins: the noun that a word
belongs to may not have been named yet, the last word may be the start of a longer one ("the
Spanish" of `spanish_civil_war`), and tags change with what follows. So the prompt is walked as
text, and at each place memory has a say: of the words that it expects there, the strongest that
the text spells.

Up to the last delimiter the parse knows the column: what it says holds if memory expects that, too.
Behind the last delimiter, memory goes first. Where memory expects nothing that is written there,
the parse holds in any case.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from giaann_p2p.model.columns import Word
from giaann_p2p.model.generate import Mind, read
from giaann_p2p.model.lexicon import Delimiter, delimiter
from giaann_p2p.model.parse import PromptSentence
from giaann_p2p.model.rows import Name, Question, Steps, empty_row


@dataclass
class Heard:
    """What came of a prompt."""

    names: list[Name] = field(default_factory=list)
    """The neurons that were taken in."""
    unknown: list[str] = field(default_factory=list)
    """The words of those that were never learned."""
    rest: str = ""
    """What the last of them has beyond the prompt's end: `_civil_war`."""


def listen(mind: Mind, sentences: list[PromptSentence]) -> Steps[Heard]:
    """Take a prompt in."""
    heard = Heard()
    for sentence in sentences:
        written = _Written(sentence)
        place = written.next(0)
        while place is not None:
            reading = yield from _read(mind, written, place)
            if reading.name is not None:
                neuron = reading.name.neuron
                (row,) = yield from read(mind, [neuron])
                mind.hear(row or empty_row(neuron, reading.name))
                if row is None:
                    heard.unknown.append(reading.name.word)
                heard.names.append(reading.name)
                heard.rest = reading.rest
            place = written.next(reading.end)
    return heard


class _Reading(NamedTuple):
    """Which neuron the text spells at some place (None: no telling), and up to where."""

    name: Name | None
    end: int
    rest: str = ""


class _Written:
    """A sentence as text, with the parse's words at their places."""

    def __init__(self, sentence: PromptSentence) -> None:
        self._sentence = sentence
        # Lower case letter by letter, so that places stay what they are.
        lower = (low if len(low := char.lower()) == 1 else char for char in sentence.text)
        self._text = "".join(lower).replace("–", "-")
        self._words = {word.start: (word, name) for word, name in sentence.words}
        self._tokens = {token.start: token for token in sentence.tokens}
        delimiters = [
            word.end
            for word, name in sentence.words
            if (name is None or name.feature) and delimiter(word.text) is not Delimiter.NONE
        ]
        self.tail = max(delimiters, default=0)

    def next(self, place: int) -> int | None:
        """Return where the next word begins."""
        end = len(self._text)
        while place < end and place not in self._tokens and self._text[place].isspace():
            place += 1
        return place if place < end else None

    def parsed(self, place: int) -> _Reading:
        """Return what the parse says: its word, or a part of one whose start memory has read."""
        if place in self._words:
            word, name = self._words[place]
            return _Reading(name, word.end)
        word, name = next((w, n) for w, n in self._words.values() if w.start < place < w.end)
        end = min(token.end for token in self._tokens.values() if token.end > place)
        return _Reading(name and Name(name.concept, self._text[place:end]), end)

    def spelled(self, name: Name, place: int) -> _Reading | None:
        """Return how the text at a place spells a neuron's word, if it does."""
        word, flat, text = name.word, name.word.replace("_", " "), self._text
        end = place + len(flat)
        if text.startswith(flat, place) and not _within_word(text, end):
            return _Reading(name, end)
        begun = text[place:]
        if flat.startswith(begun) and flat[len(begun)] in " -":
            return _Reading(name, len(text), word[len(begun) :])
        for token in self._parsed_words(place):  # the text may inflect what the neuron does not
            for form in (token.lemma, token.text):
                if word == form:
                    return _Reading(name, token.end)
                if token.end == len(text) and word.startswith((form + "_", form + "-")):
                    return _Reading(name, token.end, word[len(form) :])
        return None

    def _parsed_words(self, place: int) -> list[Word]:
        word = self._words[place][0] if place in self._words else None
        return [found for found in (word, self._tokens.get(place)) if found]


def _read(mind: Mind, written: _Written, place: int) -> Steps[_Reading]:
    """Decide between the parse and memory."""
    parsed = written.parsed(place)
    if not len(mind) or (place < written.tail and _expected(mind, parsed.name)):
        return parsed
    return (yield from _remembered(mind, written, place)) or parsed


def _expected(mind: Mind, name: Name | None) -> bool:
    """Tell whether memory, at whatever timing, expects this very neuron."""
    if name is None:
        return False
    states = mind.states()
    return any(name.neuron in state.candidates(anywhere=True).neurons() for state in states)


def _remembered(mind: Mind, written: _Written, place: int) -> Steps[_Reading | None]:
    """Return the strongest word that memory expects and the text spells; the strictest timing's."""
    for state in mind.states():
        candidates = state.candidates(anywhere=True)
        neurons = [candidates.neuron(at) for at in candidates.ranked(len(candidates)).tolist()]
        rows = yield Question(neurons, names_only=True)
        for row in rows:
            reading = written.spelled(row.name, place) if row else None
            if reading is not None:
                return reading
    return None


def _within_word(text: str, place: int) -> bool:
    return place < len(text) and text[place - 1].isalnum() and text[place].isalnum()
