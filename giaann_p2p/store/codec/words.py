"""Encodes neurons and the words that name them.

The words are numbered from 1 in the order of their ids; 0 is the prime feature. Those of the
vocabulary, which every peer knows, are encoded by their numbers there. A word of length 0 has no
text: neurons that are only targets do not need their words' texts.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from giaann_p2p.errors import DamagedError
from giaann_p2p.model.delta import Bytes, Delta, first_of_runs
from giaann_p2p.model.ids import PRIME, word_id
from giaann_p2p.model.sequence import Ids, Ints, Names
from giaann_p2p.store.codec.damage import ascending, check
from giaann_p2p.store.codec.vocabulary import SIZE, VOCABULARY

_number = word_id.__wrapped__
"""`word_id` without its cache, which a sender could otherwise fill with invented words."""
_OFTEN, _SHORT = 1 << 13, 24
"""The number of words in the cache of checked words, and the most bytes of each. A third of the
work of decoding a chunk is checking words that earlier chunks had, too; the cache saves it. It
takes some 3 MB at most."""


Flags = npt.NDArray[np.bool_]


class Words(NamedTuple):
    """Encoded neurons and their words: V neurons, W words, of which K are in the vocabulary."""

    known: Ints
    """Shape [K]: the numbers of words in the vocabulary, ascending; each is stored as the
    difference from the one before."""
    ids: Ids
    """Shape [W - K]: the ids of the other words, stored in the same way."""
    lengths: Ints
    """Shape [W]: the length of each word's text in bytes; 0 for a word without text, and 1 for a
    word of the vocabulary with one. Here the words are in the order of their ids."""
    texts: Bytes
    """The texts of the other words in UTF-8, concatenated."""
    concepts: Ints
    """Shape [V]: the word number of each neuron's concept; in a parcel, the difference from the one
    before."""
    features: Ints
    """Shape [V]: the word number of each neuron's feature; 0 for the prime feature."""


class Neurons(NamedTuple):
    """Decoded neurons, as the arrays of a delta, and the texts of their words by id."""

    concept: Ids
    feature: Ids
    names: Names


def worded(delta: Delta) -> Words:
    """Encode a delta's neurons and their words."""
    columns = first_of_runs(delta.concept)
    both = np.concatenate([delta.concept[columns], delta.feature, [np.uint64(PRIME)]])
    ids, number = np.unique(both, return_inverse=True)
    count = int(np.count_nonzero(columns))
    concept = number[:count][np.cumsum(columns) - 1]
    words = words_of(ids, concept, number[count:-1], delta.names)
    return words._replace(concepts=np.diff(words.concepts, prepend=0).astype(np.uint32))


def words_of(ids: Ids, concept: Ints, feature: Ints, names: Names) -> Words:
    """Encode neurons whose words are numbered already; `ids` are PRIME and their words, ascending.

    `concept` and `feature` are the indices of the neurons' words in `ids`.
    """
    ids = ids[1:]
    number = VOCABULARY.numbers(ids)
    known = number >= 0
    lengths, texts = _texts(names, ids, known)
    return Words(
        np.diff(number[known], prepend=0).astype(np.uint32),
        np.diff(ids[~known], prepend=np.uint64(0)),
        lengths,
        np.frombuffer(texts, np.uint8),
        concept.astype(np.uint32),
        feature.astype(np.uint32),
    )


def _texts(names: Names, ids: Ids, known: Flags) -> tuple[Ints, bytes]:
    """Return the lengths and the texts of words, as in `Words`."""
    named = np.sort(np.fromiter(names, np.uint64, len(names)))
    at = np.searchsorted(ids, named)
    here = ids.take(at, mode="clip") == named if len(ids) else np.zeros(len(at), np.bool_)
    at, named = at[here], named[here]
    lengths = np.zeros(len(ids), np.int64)
    lengths[at] = 1
    others = ~known[at]
    texts = [names[word].encode() for word in named[others].tolist()]
    lengths[at[others]] = [len(text) for text in texts]
    return lengths.astype(np.uint32), b"".join(texts)


def neurons(words: Words) -> Neurons:
    """Decode a parcel's neurons; DamagedError if they are invalid or do not ascend."""
    concepts = np.cumsum(words.concepts, dtype=np.int64)
    found = _neurons(words, concepts)
    further = (concepts[1:] > concepts[:-1]) | (words.features[1:] > words.features[:-1])
    check(further.all(), "the neurons do not ascend")
    used = np.zeros(len(words.lengths) + 1, np.bool_)
    used[concepts] = used[words.features] = True
    check(used[1:].all(), "a word belongs to no neuron")
    return found


def neurons_of(words: Words) -> Neurons:
    """Decode a sheaf's neurons; DamagedError if they are invalid."""
    found = _neurons(words, words.concepts)
    pairs = words.concepts.astype(np.uint64) << np.uint64(32) | words.features
    pairs.sort()
    check(first_of_runs(pairs).all(), "a neuron is listed twice")
    return found


def _neurons(words: Words, concepts: Ints) -> Neurons:
    check(len(words.known) + len(words.ids) == len(words.lengths), "some word has no length")
    known = np.cumsum(words.known, dtype=np.int64)
    check(known.max(initial=0) < SIZE, "a word of the vocabulary does not exist")
    others = np.cumsum(words.ids, dtype=np.uint64)
    both = np.concatenate([VOCABULARY.ids[known], others])
    order = both.argsort(kind="stable")  # which merges two ascending arrays
    ids = np.concatenate([[np.uint64(PRIME)], both[order]])
    for numbers in (known, others, ids):  # includes sums that wrap
        check(ascending(numbers), "the word ids do not ascend")
    check(concepts.min(initial=1) > PRIME, "a neuron has no concept")
    check(concepts.max(initial=0) < len(ids), "the word of a concept does not exist")
    check(words.features.max(initial=0) < len(ids), "the word of a feature does not exist")
    by_kind = np.empty_like(words.lengths)
    by_kind[order] = words.lengths
    count = len(known)
    names = _known_names(known, by_kind[:count])
    names |= _names(others, by_kind[count:], words.texts.tobytes())
    return Neurons(ids[concepts], ids[words.features], names)


def _known_names(known: Ints, lengths: Ints) -> Names:
    """Return the texts of the words of the vocabulary that are said to have one."""
    check(lengths.max(initial=0) <= 1, "a word of the vocabulary has a text of its own")
    numbers = known[lengths.nonzero()[0]]
    texts = map(VOCABULARY.text, numbers.tolist())
    return dict(zip(VOCABULARY.ids[numbers].tolist(), texts, strict=True))


def _names(ids: Ids, lengths: Ints, texts: bytes) -> Names:
    ends = np.cumsum(lengths, dtype=np.int64)
    check((ends[-1] if len(ends) else 0) == len(texts), "the texts do not have the stated length")
    with_text = np.flatnonzero(lengths)
    first = (ends - lengths)[with_text].tolist()
    pieces = zip(ids[with_text].tolist(), first, ends[with_text].tolist(), strict=True)
    return {number: text_of(number, texts[start:end]) for number, start, end in pieces}


def text_of(number: int, text: bytes) -> str:
    """Decode a word's text; DamagedError if it is not UTF-8 or does not have the word's id."""
    return _usual(number, text) if len(text) <= _SHORT else _checked(number, text)


def _checked(number: int, text: bytes) -> str:
    try:
        word = text.decode()
    except UnicodeDecodeError as error:
        raise DamagedError(f"the text of word {number:016x} is not UTF-8: {error.reason}") from None
    check(_number(word) == number, f"word id {number:016x} is not that of {word[:40]!r}")
    return word


_usual = lru_cache(_OFTEN)(_checked)
