"""Tags tokens with what GIAANN needs: lower-case text, lemma, and whether the token is a noun.

The result is exactly that of spaCy's whole pipeline, in two thirds of the time. The neural tagger
is followed by an attribute ruler and a lemmatizer. Their results depend only on the token's text
and fine tag, except for a few words whose lemma depends on their neighbours ("gon na"). So they run
once for each (text, tag), on a document of that one token. They run in full for a sentence in which
one of those few words is a noun.

The remaining time is matrix multiplication by BLIS, spaCy's own. numpy's OpenBLAS is three times as
fast, and would double the rate of the whole parse. But BLIS computes each row of a product with the
same bits whatever rows are beside it, and OpenBLAS does not: a sentence's tags could then, if
rarely, depend on the sentences that are parsed with it, and learning on the order of the text.
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc

from giaann_p2p.model.columns import Word

_NOUNS = frozenset(["NOUN", "PROPN"])
_IN_CONTEXT = frozenset(["ai", "gon", "na", "ta", "'s", "c'm", "y", "y'"])
"""The words whose lemma the ruler's patterns of several tokens can set."""

_MOST = 1 << 16
"""The most meanings in the cache, at some 850 bytes each."""


class _Meaning(NamedTuple):
    lower: str
    lemma: str
    noun: bool
    length: int


class Tagger:
    """Runs the English pipeline, with a cache of its results for each (text, tag)."""

    def __init__(self, nlp: Language) -> None:
        self._nlp = nlp
        self._rules: list[Any] = [nlp.get_pipe("attribute_ruler"), nlp.get_pipe("lemmatizer")]
        self._meanings: dict[tuple[int, int], _Meaning] = {}

    def memory(self) -> AbstractContextManager[object]:
        """Return a memory zone: at its end, spaCy forgets the words that were new in it."""
        return self._nlp.memory_zone()

    def tokenize(self, text: str) -> Doc:
        """Return the tokens of a sentence, untagged."""
        return self._nlp.make_doc(text)

    def words(self, docs: Iterable[Doc]) -> Iterator[list[Word]]:
        """Yield the words of each sentence, as the whole pipeline tags them."""
        with self._nlp.select_pipes(enable=["tok2vec", "tagger"]):
            for doc in self._nlp.pipe(docs):
                yield self._words(doc)

    def _words(self, doc: Doc) -> list[Word]:
        words = []
        for i, (orth, tag, start) in enumerate(doc.to_array(["ORTH", "TAG", "IDX"]).tolist()):
            meaning = self._meanings.get((orth, tag)) or self._learn(doc, i)
            if meaning.noun and meaning.lower in _IN_CONTEXT:
                return self._words_in_context(doc)
            lower, lemma, noun, length = meaning
            words.append(Word(lower, lemma, noun, start, start + length))
        return words

    def _learn(self, doc: Doc, at: int) -> _Meaning:
        token = doc[at]
        if len(self._meanings) >= _MOST:
            self._meanings.clear()
        alone = self._ruled(Doc(doc.vocab, [token.text], tags=[token.tag_]))[0]
        meaning = _Meaning(
            token.lower_, alone.lemma_.lower(), alone.pos_ in _NOUNS, len(token.text)
        )
        self._meanings[token.orth, token.tag] = meaning
        return meaning

    def _words_in_context(self, doc: Doc) -> list[Word]:
        return [
            Word(t.lower_, t.lemma_.lower(), t.pos_ in _NOUNS, t.idx, t.idx + len(t))
            for t in self._ruled(doc)
        ]

    def _ruled(self, doc: Doc) -> Doc:
        ruler, lemmatizer = self._rules
        lemmatizer.cache.clear()  # it is unbounded, and the results are cached here
        ruled: Doc = lemmatizer(ruler(doc))
        return ruled
