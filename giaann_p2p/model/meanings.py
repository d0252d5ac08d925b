"""What a tagged token means to GIAANN: its lower-case text, whether it is a noun, and its lemma.

In spaCy an attribute ruler and a lemmatizer derive this from the token's text and tag, except for a
few words whose lemma depends on their neighbours ("gon na"). So both run once for each (text, tag),
and the ruler only for words that its patterns name: for all others the tag alone decides. The ruler
runs in full for a sentence in which one of those few words is a noun.

Lower-case texts and lemmas stay strings here: spaCy would look them up by their hashes, which other
words may have, too (see `word_memory`).
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast

from spacy.language import Language
from spacy.tokens import Doc, Token

from giaann_p2p.model.columns import Word

_NOUNS = frozenset(["NOUN", "PROPN"])
_IN_CONTEXT = frozenset(["ai", "gon", "na", "ta", "'s", "c'm", "y", "y'"])
"""The words whose lemma the ruler's patterns of several tokens can set."""
_NAMELESS = "xyzzy"
"""A word that no pattern names."""
_FOLLOWS_FROM_TAG = frozenset(["TAG", "DEP"])
"""What patterns may test besides a token's text; no token here has a DEP."""
_MOST = 1 << 16
"""The most meanings in the cache, at some 850 bytes each."""


class Meaning(NamedTuple):
    """What a token means."""

    lower: str
    lemma: str
    noun: bool
    length: int
    in_context: bool
    """Whether its lemma may depend on its neighbours."""


class _Bare(NamedTuple):
    """The attributes of a token that the lemmatizer reads, without a document around it."""

    pos: int
    pos_: str
    morph: Any
    text: str = ""
    orth: int = 0
    lemma: int = 0


class Meanings:
    """The meanings of tokens, each computed once, from one copy of the pipeline."""

    def __init__(self, tags: Sequence[str], nlp: Language) -> None:
        self._tags = tags
        self._known: dict[tuple[int, int], Meaning] = {}
        self._ruler = cast(Any, nlp.get_pipe("attribute_ruler"))
        self._lemmatizer = cast(Any, nlp.get_pipe("lemmatizer"))
        self._named = named_in(self._ruler.patterns)
        ruled = [self._ruler(Doc(nlp.vocab, [_NAMELESS], tags=[tag]))[0] for tag in tags]
        self._bare = [_Bare(token.pos, token.pos_, token.morph) for token in ruled]

    def __repr__(self) -> str:
        return f"<Meanings: {len(self._known):,} known>"

    def known(self, orth: int, tag: int) -> Meaning | None:
        """Return the cached meaning for a text's hash and a tag's number; None if there is none."""
        return self._known.get((orth, tag))

    def of(self, token: Token, tag: int) -> Meaning:
        """Compute and cache the meaning of a token, given the number of its tag."""
        if len(self._known) >= _MOST:
            self._known.clear()
        meaning = self._known[token.orth, tag] = self._found(token, tag)
        return meaning

    def in_context(self, doc: Doc, tags: Iterable[int]) -> list[Word]:
        """Return the words of a sentence in which a lemma may depend on neighbours."""
        for token, tag in zip(doc, tags, strict=True):
            token.tag_ = self._tags[tag]
        return [
            Word(*self._meaning(token)[:3], token.idx, token.idx + len(token))
            for token in self._ruler(doc)
        ]

    def _found(self, token: Token, tag: int) -> Meaning:
        text = token.text
        if self._named.fullmatch(text.lower()):
            named = Doc(token.vocab, [text], tags=[self._tags[tag]])
            return self._meaning(self._ruler(named)[0])
        return self._meaning(self._bare[tag]._replace(text=text, orth=token.orth))

    def _meaning(self, token: Any) -> Meaning:  # noqa: ANN401  (a token, or a bare one)
        noun, text = token.pos_ in _NOUNS, token.text
        lower = text.lower()
        self._lemmatizer.cache.clear()  # it is unbounded, and the results are cached here
        lemma: str = token.lemma_ if token.lemma else self._lemmatizer.lemmatize(token)[0]
        return Meaning(lower, lemma.lower(), noun, len(text), noun and lower in _IN_CONTEXT)


def named_in(patterns: Iterable[Any]) -> re.Pattern[str]:
    """Return a regex for the lower-case words that a ruler's patterns name, and white space.

    It matches every word if a pattern tests something that is not understood here.
    """
    texts, others = set(), [r"\s+"]
    for token in (token for one in patterns for pattern in one["patterns"] for token in pattern):
        asked = {key: value for key, value in token.items() if key not in _FOLLOWS_FROM_TAG}
        match asked:
            case {"LOWER": str(text), **more} if not more:
                texts.add(text)
            case {"LOWER": {"IN": list(some)}, **more} if not more:
                texts.update(some)
            case {"LOWER": {"REGEX": str(regex)}, **more} if not more:
                others.append(regex)
            case {"IS_SPACE": bool(), **more} if not more:
                pass
            case {**more} if not more:
                pass
            case _:
                others.append(r"(?s:.*)")
    return re.compile("|".join([*map(re.escape, sorted(texts)), *others]))
