"""Reads a prompt: maps its words to neurons.

The parse of a prompt may differ from the parse of the sentence that it begins: the noun that a word
belongs to may come later, the last word may be the start of a longer one ("the Spanish" of
`spanish_civil_war`), and tags depend on what follows. So the prompt is walked as text, and at each
place memory proposes a word: of the words that it expects there, the strongest that the text
spells.

Up to the last delimiter the parse knows the column, so its word is used if memory expects it, too.
After the last delimiter, memory has priority. If memory expects nothing that the text spells, the
parse is used in any case.

Memory expects words as numbers, up to some 10^5 after a common word. A text spells few words, so
these are numbered and looked up among the expected ones. Names are requested only near the end of
the prompt, where a word may continue beyond it.
"""

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import takewhile
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.candidates import Candidates
from giaann_p2p.model.columns import Word
from giaann_p2p.model.generate import Mind, read
from giaann_p2p.model.ids import PRIME, word_id
from giaann_p2p.model.lexicon import Delimiter, delimiter
from giaann_p2p.model.parse import PromptSentence
from giaann_p2p.model.rows import Name, Question, Row, Steps, empty_row
from giaann_p2p.model.sequence import Ids

_LONGEST = 16
"""The most tokens of a text that are tried as one word."""
_LONGEST_BEGUN = 4
"""The most tokens at the prompt's end that are tried as the start of a longer word."""
_MOST_NAMES = 1024
"""The number of strongest words whose names are requested, at each place near the end."""


@dataclass
class Heard:
    """The result of hearing a prompt."""

    names: list[Name] = field(default_factory=list)
    """The names of the neurons that were heard."""
    unknown: list[str] = field(default_factory=list)
    """The neurons that were never learned: `zorp` for a noun, `company/the` for a word of its
    column. If the noun of a column is unknown, only the noun is listed."""
    rest: str = ""
    """The part of the last heard word beyond the prompt's end: `_civil_war`."""


def listen(mind: Mind, sentences: list[PromptSentence]) -> Steps[Heard]:
    """Have a mind hear a prompt; return the names of its neurons, and which are unknown."""
    heard, unknown = Heard(), list[Name]()
    for sentence in sentences:
        written = _Written(sentence)
        place = written.next(0)
        while place is not None:
            reading = yield from _read(mind, written, place)
            if reading.name is not None:
                neuron = reading.name.neuron
                row = reading.row or (yield from read(mind, [neuron]))[0]
                mind.hear(row or empty_row(neuron, reading.name))
                if row is None:
                    unknown.append(reading.name)
                heard.names.append(reading.name)
                heard.rest = reading.rest
            place = written.next(reading.end)
    heard.unknown = _reported(unknown)
    return heard


def _reported(unknown: list[Name]) -> list[str]:
    """Return unknown neurons in the form in which they are reported to users, each once."""
    nouns = {name.concept for name in unknown if name.feature is None}
    reported = (
        name.concept if name.feature is None else f"{name.concept}/{name.feature}"
        for name in unknown
        if name.feature is None or name.concept not in nouns
    )
    return list(dict.fromkeys(reported))


class _Reading(NamedTuple):
    """A neuron that the text spells at some place (None if undecided), and where the word ends."""

    name: Name | None
    end: int
    rest: str = ""
    row: Row | None = None
    """The neuron's row, if it was read already."""


class _Written:
    """A sentence as text, with the words of the parse at their offsets."""

    def __init__(self, sentence: PromptSentence) -> None:
        # Lower case letter by letter, so that offsets do not change.
        lower = (low if len(low := char.lower()) == 1 else char for char in sentence.text)
        self._text = "".join(lower).replace("–", "-")
        self.end = len(self._text)
        self._words = {word.start: (word, name) for word, name in sentence.words}
        self._tokens = {token.start: token for token in sentence.tokens}
        self._last = sentence.tokens[-1].text if sentence.tokens else ""
        self._token_ends = [token.end for token in sentence.tokens]
        delimiters = [
            word.end
            for word, name in sentence.words
            if (name is None or name.feature) and delimiter(word.text) is not Delimiter.NONE
        ]
        self.tail = max(delimiters, default=0)

    def next(self, place: int) -> int | None:
        """Return the offset at which the next word begins; None at the end."""
        while place < self.end and place not in self._tokens and self._text[place].isspace():
            place += 1
        return place if place < self.end else None

    def parsed(self, place: int) -> _Reading:
        """Return the word of the parse; or the rest of a word whose start memory has read."""
        if place in self._words:
            word, name = self._words[place]
            return _Reading(name, word.end)
        word, name = next((w, n) for w, n in self._words.values() if w.start < place < w.end)
        end = min(token.end for token in self._tokens.values() if token.end > place)
        return _Reading(name and Name(name.concept, self._text[place:end]), end)

    def spelled(self, place: int) -> dict[int, int]:
        """Return the numbers of the words that the text spells at a place, with their ends."""
        ends: dict[str, int] = {}
        for end in self._ends(place):
            for word in _words(self._text[place:end]):
                ends[word] = end
        for token in self._parsed_words(place):  # the text may be inflected, unlike the neuron
            for form in (token.lemma, token.text):
                ends.setdefault(form, token.end)
        return {word_id(word): end for word, end in ends.items()}

    def begun(self, place: int) -> tuple[str, ...]:
        """Return prefixes of the longer words that the text from a place on may begin."""
        if len(self._ends(place)) > _LONGEST_BEGUN or not any(map(str.isalnum, self._last)):
            return ()
        words = [word for word in self._parsed_words(place) if word.end == self.end]
        forms = [form for word in words for form in (word.lemma, word.text)]
        return tuple(
            start + joint for start in [*_words(self._text[place:]), *forms] for joint in "_-"
        )

    def _ends(self, place: int) -> list[int]:
        """Return the offsets at which the next tokens end."""
        first = bisect_right(self._token_ends, place)
        return self._token_ends[first : first + _LONGEST]

    def _parsed_words(self, place: int) -> list[Word]:
        word = self._words[place][0] if place in self._words else None
        return [found for found in (word, self._tokens.get(place)) if found]


def _read(mind: Mind, written: _Written, place: int) -> Steps[_Reading]:
    """Return the neuron at a place in the text: the parse's, or one that memory expects."""
    parsed = written.parsed(place)
    if not len(mind):
        return parsed
    if place < written.tail and parsed.name and (yield from mind.expects(parsed.name.neuron)):
        return parsed
    return (yield from _remembered(mind, written, place)) or parsed


def _remembered(mind: Mind, written: _Written, place: int) -> Steps[_Reading | None]:
    """Return the strongest word that memory expects and the text spells.

    The strictest timing that finds one decides.
    """
    spelled, begun = written.spelled(place), written.begun(place)
    numbers = np.array(list(spelled), np.uint64)
    followers = _word_ids(*mind.followers())
    if not (begun and len(followers)) and not np.isin(followers, numbers).any():
        return None
    for steps in mind.settled():
        expected = (yield from steps).candidates(anywhere=True)
        words = _word_ids(*expected.ids())
        whole = _only(expected, np.isin(words, numbers))
        longer = (yield from _longer(expected, whole, begun)) if begun else None
        if longer is not None:
            name, rest = longer
            return _Reading(name, written.end, rest)
        for at in whole.ranked(len(whole)).tolist():
            (row,) = yield from read(mind, [whole.neuron(at)])
            if row is not None:
                return _Reading(row.name, spelled[word_id(row.name.word)], row=row)
    return None


def _longer(
    expected: Candidates, whole: Candidates, begun: tuple[str, ...]
) -> Steps[tuple[Name, str] | None]:
    """Return the strongest word that continues beyond the prompt's end, and its rest.

    None if it is not stronger than the words that the text spells completely.
    """
    best = next((whole.neuron(at) for at in whole.ranked(1).tolist()), None)
    ranked = map(expected.neuron, expected.ranked(_MOST_NAMES).tolist())
    stronger = list(takewhile(lambda neuron: neuron != best, ranked))
    rows = (yield Question(stronger, names_only=True)) if stronger else []
    for row in rows:
        start = next((start for start in begun if row and row.name.word.startswith(start)), None)
        if row is not None and start is not None:
            return row.name, row.name.word[len(start) - 1 :]
    return None


def _word_ids(concept: Ids, feature: Ids) -> Ids:
    """Return the numbers of some neurons' words."""
    words: Ids = np.where(feature == PRIME, concept, feature)
    return words


def _only(candidates: Candidates, chosen: npt.NDArray[np.bool_]) -> Candidates:
    return Candidates(
        candidates.wiring,
        candidates.index[chosen],
        candidates.score[chosen],
        candidates.strength[chosen],
    )


def _words(text: str) -> list[str]:
    """Return the words that a text can spell: its parts merged, with its dashes in two forms."""
    word = text.replace(" ", "_")
    return [word, word.replace("-", "_-_")]
