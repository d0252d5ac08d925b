"""Learns a sample of a text, to see how the text's connections are spread over columns."""

from collections.abc import Callable, Iterator
from pathlib import Path

from giaann_p2p.errors import TextError
from giaann_p2p.model.delta import Delta, total
from giaann_p2p.model.parse import chunks
from giaann_p2p.model.profiles import profile_of
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.text import Sentence
from giaann_p2p.solo.corpus import Corpus, opened

MOST_CHUNKS = 256
"""The most chunks of a sample, of 64 sentences each."""


def sampled(path: Path, spec: ModelSpec, progress: Callable[[int], None] = lambda _: None) -> Delta:
    """Return the summed delta of chunks at equal distances; TextError if it has no connections.

    The beginning of a text is not a good sample, because its subjects may change later. `progress`
    is called with the number of chunks that were learned.
    """
    profile, found = profile_of(spec), list[Delta]()
    profile.warm_up()
    with opened(path) as corpus:
        texts = profile.texts(corpus.blocks(), corpus.name)
        for learned in profile.learned(_some(chunks(texts), corpus), 1):
            found.append(learned.delta)
            progress(len(found))
    whole = total(found)
    if not whole.connections:
        raise TextError(f"{path}: there is nothing to learn in it, so it shows no large columns")
    return whole


def _some(of: Iterator[list[Sentence]], corpus: Corpus) -> Iterator[list[Sentence]]:
    """Yield up to `MOST_CHUNKS` of a text's chunks, evenly spread over the text.

    A chunk is yielded if fewer chunks were yielded than the share of the text read so far demands.
    """
    taken = 0
    for chunk in of:
        if taken < corpus.share * MOST_CHUNKS:
            taken += 1
            yield chunk
