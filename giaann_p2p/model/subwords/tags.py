"""The parts of speech of words, as spaCy's pipeline derives them from a word's text and its tag.

In spaCy an attribute ruler does that. It looks at neighbours for lemmas only (see `meanings`), so
it runs once for each word and tag here, and once for each tag if no pattern names the word.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from spacy.language import Language
from spacy.tokens import Doc

from giaann_p2p.model.meanings import named_in

_NAMELESS = "xyzzy"
"""A word that no pattern names."""
_MOST = 1 << 16
"""The most words in the cache, at some 300 bytes each."""


class PartOfSpeech(NamedTuple):
    """The coarse part of speech of a word, and its tag."""

    pos: str
    tag: str


class TaggedWord(NamedTuple):
    """A word of a text, with its offset in characters."""

    text: str
    start: int
    part: PartOfSpeech


class PartsOfSpeech:
    """The parts of speech of words, each found once."""

    def __init__(self, tags: Sequence[str], nlp: Language) -> None:
        self._tags, self._vocab = tags, nlp.vocab
        self._ruler = cast(Any, nlp.get_pipe("attribute_ruler"))
        self._named = named_in(self._ruler.patterns)
        self._plain = [self._ruled(_NAMELESS, tag) for tag in range(len(tags))]
        self._known: dict[tuple[str, int], PartOfSpeech] = {}

    def __repr__(self) -> str:
        return f"<PartsOfSpeech: {len(self._known):,} known>"

    def words(self, doc: Doc, tagged: Sequence[tuple[int, int, int]]) -> list[TaggedWord]:
        """Return a text's words, given each token's hash, the number of its tag, and its offset.

        Offsets are counted anew: spaCy's are wrong after a word whose hash is that of a longer or
        shorter word that it met before (see `word_memory`), and a text is cropped by them.
        """
        found, start = list[TaggedWord](), 0
        for token, (_, tag, _) in zip(doc, tagged, strict=True):
            text = token.text
            found.append(TaggedWord(text, start, self._of(text, tag)))
            start += len(text) + len(token.whitespace_)
        return found

    def _of(self, text: str, tag: int) -> PartOfSpeech:
        found = self._known.get((text, tag))
        if found is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            named = self._named.fullmatch(text.lower())
            found = self._ruled(text, tag) if named else self._plain[tag]
            self._known[text, tag] = found
        return found

    def _ruled(self, text: str, tag: int) -> PartOfSpeech:
        (token,) = self._ruler(Doc(self._vocab, [text], tags=[self._tags[tag]]))
        return PartOfSpeech(token.pos_, token.tag_)
