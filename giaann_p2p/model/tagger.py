"""Tags tokens with what GIAANN needs: lower-case text, lemma, and whether the token is a noun.

The tags are those of spaCy's tagger, computed in whole numbers (see `tagger_layers`). So they are
the same on every machine, and do not depend on which sentences are tagged together.
"""

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from itertools import islice

import torch
from spacy.language import Language
from spacy.tokens import Doc

from giaann_p2p.model.columns import Word
from giaann_p2p.model.meanings import Meanings
from giaann_p2p.model.tagger_layers import TaggerLayers
from giaann_p2p.model.tagger_tables import TaggerTables
from giaann_p2p.model.token_types import MOST, TokenTypes, tokens_of

_AT_ONCE = 1 << 12
"""Tokens that are tagged together: a bound on temporary memory, some 30 MB."""
_FEW = 1 << 8
"""The most types of tokens that are remembered for a single sentence."""


class Tagger:
    """Runs the English pipeline, and caches its results for tokens."""

    def __init__(
        self, nlp: Language, tables: TaggerTables, device: str | torch.device = "cpu"
    ) -> None:
        # On a CPU numpy takes half of torch's time for a prompt, and less for a chunk, too.
        on_processor = torch.device(device).type == "cpu"
        self._tags = tables.tags
        self._layers = TaggerLayers(tables, None if on_processor else device)
        self._begin(nlp)

    def __repr__(self) -> str:
        return f"<Tagger: {self._layers!r}, {self._types!r}>"

    @property
    def tags(self) -> Sequence[str]:
        """The names of the tags, by number."""
        return self._tags

    def use(self, nlp: Language) -> None:
        """Continue with this copy of the pipeline; if it is another one, forget all tokens.

        They are cached by their hashes, which stand for other words in another copy.
        """
        if nlp is not self._nlp:
            self._begin(nlp)

    def beside(self, nlp: Language) -> "Tagger":
        """Return a tagger for a copy of the pipeline, with nothing cached."""
        other = copy(self)
        other._begin(nlp, _FEW)
        return other

    def words(self, docs: Iterable[Doc]) -> Iterator[list[Word]]:
        """Yield the words of each sentence, as the whole pipeline tags them."""
        return (self._words(doc, found) for doc, found in self.tagged(docs))

    def tagged(self, docs: Iterable[Doc]) -> Iterator[tuple[Doc, list[tuple[int, int, int]]]]:
        """Yield each sentence with each token's hash, the number of its tag, and its offset."""
        for group in _groups(docs):
            tokens = tokens_of(group)
            lengths = list(map(len, group))
            tags = self._layers.tags(*self._types.of(tokens), lengths).tolist()
            found = zip(tokens[:, 0].tolist(), tags, tokens[:, 1].tolist(), strict=True)
            for doc, length in zip(group, lengths, strict=True):
                yield doc, list(islice(found, length))

    def _begin(self, nlp: Language, most: int = MOST) -> None:
        self._nlp = nlp
        self._types = TokenTypes(self._layers, most)
        self._meanings = Meanings(self._tags, nlp)

    def _words(self, doc: Doc, found: Sequence[tuple[int, int, int]]) -> list[Word]:
        """Return a sentence's words, given each token's hash, tag and offset."""
        words = []
        for at, (orth, tag, start) in enumerate(found):
            meaning = self._meanings.known(orth, tag) or self._meanings.of(doc[at], tag)
            lower, lemma, noun, length, in_context = meaning
            if in_context:
                return self._meanings.in_context(doc, [tag for _, tag, _ in found])
            words.append(Word(lower, lemma, noun, start, start + length))
        return words


def _groups(docs: Iterable[Doc]) -> Iterator[list[Doc]]:
    """Group sentences to be tagged together: of _AT_ONCE tokens at most, or one longer sentence."""
    group: list[Doc] = []
    tokens = 0
    for doc in docs:
        if group and tokens + len(doc) > _AT_ONCE:
            yield group
            group, tokens = [], 0
        group.append(doc)
        tokens += len(doc)
    if group:
        yield group
