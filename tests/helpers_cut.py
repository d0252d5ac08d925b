"""Lessons around two nouns, bee and elk, whose columns tests of cut columns cut."""

import numpy as np

from giaann_p2p.model.delta import Delta, total
from giaann_p2p.model.ids import PRIME, word_id
from giaann_p2p.model.learn import learn
from giaann_p2p.model.rows import Neuron
from giaann_p2p.store.cut_columns import cut_columns
from giaann_p2p.store.cuts import Cut
from tests.helpers import SMALL, built

BEE = Neuron(word_id("bee"), PRIME)
CUTS = (Cut("bee", 16), Cut("elk", 4))
COLUMNS = cut_columns(CUTS)


def lesson(number: int, words: int = 300, before: int = 40, after: int = 40) -> Delta:
    """Return the delta of three sentences, each of a noun between some of so many words."""
    rng, length = np.random.default_rng(number), before + after
    around = [f"w{word}/" for word in rng.choice(words, 3 * length)]
    nouns = zip((0, length, 2 * length), ("bee/N", "elk/N", "bee/N"), strict=True)
    said = [[*around[n : n + before], noun, *around[n + before : n + length]] for n, noun in nouns]
    return learn(built(*map(" ".join, said)), SMALL)


LESSONS = [lesson(number) for number in range(6)]
WHOLE = total(LESSONS)


def neurons(delta: Delta) -> list[Neuron]:
    """Return all neurons of a delta."""
    return [Neuron(*n) for n in zip(delta.concept.tolist(), delta.feature.tolist(), strict=True)]
