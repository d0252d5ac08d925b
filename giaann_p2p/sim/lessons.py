"""The lessons of simulations: small chunks of made-up sentences, and the content they add up to."""

import random
from collections.abc import Iterable
from functools import cache

import numpy as np

from giaann_p2p.model.columns import Word
from giaann_p2p.model.delta import EMPTY, Delta, total
from giaann_p2p.model.digest import digest
from giaann_p2p.model.ids import word_id
from giaann_p2p.model.learn import learn
from giaann_p2p.model.rows import DeltaRows, Neuron
from giaann_p2p.model.sequence import Ints, SequenceBuilder
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.subwords.learn import learn_tokens
from giaann_p2p.model.subwords.sequence import TokenSequenceBuilder
from giaann_p2p.model.subwords.spec import subword_spec
from giaann_p2p.model.subwords.tags import PartOfSpeech
from giaann_p2p.model.subwords.tokens import Token
from giaann_p2p.store.codec.parcel import encode
from giaann_p2p.store.cuts import Cut
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.store.seal import Tree, made

SPEC = ModelSpec(seed_tokens=4)
SPECS = {"words": SPEC, "subwords": subword_spec()}
"""The spec of each profile."""
_NOUNS, _OTHERS = 24, 12
_FIRST_NOUN, _FIRST_OTHER = 1000, 2000
"""The first tokens of o200k that stand for made-up nouns and other words."""
_SENTENCES, _TOKENS = 4, 7


_FIRST_LESSONS, _LARGE = 20, 6
_MOST_PARCELS = 4096
_MOST_ROWS = 256


@cache
def lessons_of(layout: Layout, profile: str = "words", late: bool = False) -> "Lessons":
    """Return the lessons for a layout; all histories that one process simulates share them."""
    return Lessons(layout, profile, late)


class Lessons:
    """Numbered chunks and their learned results, the same in every simulation."""

    def __init__(self, layout: Layout, profile: str = "words", late: bool = False) -> None:
        """`late`: only every second chunk's delta is cut, as if columns had been cut meanwhile."""
        self.late = late
        self.layout, self.spec, self._profile = layout, SPECS[profile], profile
        self._plain = _DELTAS[profile]
        self._deltas: dict[int, Delta] = {}
        self._uncut: dict[frozenset[int], DeltaRows] = {}
        self._parcels: dict[tuple[int, bytes], bytes] = {}
        self._shards: dict[int, Ints] = {}
        self._trees: dict[int, Tree] = {}
        self._parts: dict[tuple[int, int], Delta] = {}
        self._digests: dict[tuple[int, frozenset[int]], int] = {}
        self._rows: dict[tuple[int, frozenset[int]], DeltaRows] = {}

    def of(self, layout: Layout) -> "Lessons":
        """Return the same lessons for a layout with another number of shards."""
        return lessons_of(layout, self._profile, self.late)

    def delta(self, chunk: int) -> Delta:
        """Return a chunk's delta."""
        if not self.layout.columns or (self.late and chunk % 2):
            return self._plain(chunk)
        if chunk not in self._deltas:
            self._deltas[chunk] = self.layout.columns.cut(self._plain(chunk))
        return self._deltas[chunk]

    def parcel(self, chunk: int, shards: Shards) -> bytes:
        """Return a chunk's rows for some shards, encoded as a parcel."""
        wanted = np.zeros(self.layout.shards, np.bool_)
        wanted[shards] = True
        rows = wanted[self._homes(chunk)]
        key = chunk, rows.tobytes()  # many sets of shards differ only in shards without its rows
        if key not in self._parcels:
            if len(self._parcels) == _MOST_PARCELS:
                self._parcels.clear()
            self._parcels[key] = encode(self.delta(chunk).only(rows) if rows.any() else EMPTY)
        return self._parcels[key]

    def tree(self, chunk: int) -> Tree:
        """Return the hash tree of a chunk's delta."""
        if chunk not in self._trees:
            self._trees[chunk] = made(self.delta(chunk), self.layout)
        return self._trees[chunk]

    def part(self, chunk: int, shard: int) -> Delta:
        """Return a chunk's rows for one shard."""
        if (chunk, 0) not in self._parts:
            parts = self.delta(chunk).cut(self._homes(chunk))
            for number in range(self.layout.shards):
                self._parts[chunk, number] = parts.get(number, EMPTY)
        return self._parts[chunk, shard]

    def _homes(self, chunk: int) -> Ints:
        """Return the shard of each of a chunk's neurons."""
        if chunk not in self._shards:
            delta = self.delta(chunk)
            homes = self.layout.shards_of(delta.concept, delta.feature)
            self._shards[chunk] = homes.astype(np.int64)
        return self._shards[chunk]

    def content(self, shard: int, chunks: Iterable[int]) -> Delta:
        """Return the content of a shard that has applied the given chunks."""
        return total([EMPTY, *(self.part(chunk, shard) for chunk in chunks)])

    def rows(self, shard: int, chunks: frozenset[int]) -> DeltaRows:
        """Return the readable rows of a shard that has applied the given chunks."""
        key = shard, chunks
        if key not in self._rows:
            if len(self._rows) == _MOST_ROWS:
                self._rows.clear()
            self._rows[key] = DeltaRows(self.content(shard, chunks))
        return self._rows[key]

    def uncut(self, chunks: frozenset[int]) -> DeltaRows:
        """Return the given chunks' rows of the cut columns, as they would be without any cut."""
        if chunks not in self._uncut:
            if len(self._uncut) == _MOST_ROWS:
                self._uncut.clear()
            some = total([EMPTY, *map(self._of_cut_columns, sorted(chunks))])
            self._uncut[chunks] = DeltaRows(some)
        return self._uncut[chunks]

    def _of_cut_columns(self, chunk: int) -> Delta:
        delta = self._plain(chunk)
        words = [word_id(cut.word) for cut in self.layout.cuts or ()]
        return delta.only(np.isin(delta.concept, np.array(words, np.uint64)))

    def digest(self, shard: int, chunks: frozenset[int]) -> int:
        """Return the digest of a shard that has applied the given chunks."""
        key = shard, chunks
        if key not in self._digests:
            self._digests[key] = digest(self.content(shard, sorted(chunks)))
        return self._digests[key]

    def neurons(self, chunk: int) -> list[Neuron]:
        """Return the neurons that occur in a chunk."""
        delta = self._plain(chunk)
        rows = np.flatnonzero(delta.count)
        return list(map(Neuron, delta.concept[rows].tolist(), delta.feature[rows].tolist()))


@cache
def _words_delta(chunk: int) -> Delta:
    rng = random.Random(chunk)
    builder = SequenceBuilder(SPEC.branches)
    for _ in range(_SENTENCES):
        builder.add([_word(rng, i) for i in range(rng.randrange(3, _TOKENS))] + [_noun(rng)])
    return learn(builder.build(), SPEC)


@cache
def _subwords_delta(chunk: int) -> Delta:
    """Return a chunk's delta in the profile `subwords`: each word of its text is one token."""
    rng = random.Random(chunk)
    builder = TokenSequenceBuilder()
    for _ in range(_SENTENCES):
        builder.add([_token(_word(rng, i)) for i in range(rng.randrange(3, _TOKENS))])
    return learn_tokens(builder.build(), SPECS["subwords"])


_DELTAS = {"words": _words_delta, "subwords": _subwords_delta}


def large_columns(profile: str, parts: int) -> tuple[Cut, ...]:
    """Return cuts of the columns that are largest in the first lessons; no cuts for 0 `parts`."""
    if not parts:
        return ()
    delta = total([_DELTAS[profile](chunk) for chunk in range(_FIRST_LESSONS)])
    concept, at = np.unique(delta.concept, return_inverse=True)
    largest = np.argsort(-np.bincount(at, delta.lengths), kind="stable")[:_LARGE]
    return tuple(Cut(delta.names[word], parts) for word in concept[largest].tolist())


def _token(word: Word) -> Token:
    number = int(word.text[4:]) + (_FIRST_NOUN if word.noun else _FIRST_OTHER)
    return Token(number, word.text, PartOfSpeech("NOUN" if word.noun else "ADJ", ""))


def _word(rng: random.Random, at: int) -> Word:
    return _noun(rng) if at % 3 == 1 else _other(rng)


def _noun(rng: random.Random) -> Word:
    text = f"noun{min(rng.randrange(_NOUNS), rng.randrange(_NOUNS))}"
    return Word(text, text, True, 0, len(text))


def _other(rng: random.Random) -> Word:
    text = f"word{min(rng.randrange(_OTHERS), rng.randrange(_OTHERS))}"
    return Word(text, text, False, 0, len(text))
