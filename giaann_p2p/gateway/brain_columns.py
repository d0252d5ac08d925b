"""Reads columns and nouns of a brain, straight from its store."""

import sys
import time

from giaann_p2p.client.column import Target, strongest_of
from giaann_p2p.gateway.noun_index import NounIndex
from giaann_p2p.gateway.views import Found, ShownColumn, ShownLead, ShownWord
from giaann_p2p.model.ids import word_id
from giaann_p2p.model.rows import Name, Neuron, Question
from giaann_p2p.model.spec import UNITS
from giaann_p2p.model.traits import traits_of
from giaann_p2p.store.store import Store
from giaann_p2p.store.whole_rows import whole_rows

_REFRESH = 10.0
"""Seconds for which a list of nouns is used."""


class BrainNouns:
    """The nouns of a brain; a search lists them again if the list is old."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._listed, self._index = float("-inf"), NounIndex()

    def search(self, prefix: str, most: int) -> Found:
        """Return nouns that begin with a text, the most frequent first."""
        if (now := time.monotonic()) - self._listed > _REFRESH:
            self._listed, self._index = now, NounIndex(self._store.nouns())
        return self._index.search(prefix, most)


def column_of(store: Store, noun: str, words: int, leads: int) -> ShownColumn | None:
    """Return a noun's column; None if the brain never learned it."""
    for name in traits_of(store.spec.profile).column_names(noun, store.spec):
        concept = word_id(name)
        features = store.features(concept, sys.maxsize)  # all, because they are counted
        if len(features):
            break
    else:
        return None
    asked = Question([Neuron(concept, feature) for feature in features[:words].tolist()])
    rows = whole_rows(store).read(asked)
    found = sorted((row for row in rows if row), key=lambda row: -row.count)
    targets = [strongest_of(row, leads) for row in found]
    names = _names(store, [target.neuron for row in targets for target in row])
    shown = [
        ShownWord(
            feature=row.name.feature,
            occurrences=row.count,
            connections=len(row.strength),
            leads=[_lead(one, names[one.neuron]) for one in each if one.neuron in names],
        )
        for row, each in zip(found, targets, strict=True)
    ]
    return ShownColumn(concept=name, size=len(features), words=shown)


def _names(store: Store, neurons: list[Neuron]) -> dict[Neuron, Name]:
    wanted = list(dict.fromkeys(neurons))
    rows = store.read(Question(wanted)) if wanted else []
    return {neuron: row.name for neuron, row in zip(wanted, rows, strict=True) if row}


def _lead(target: Target, name: Name) -> ShownLead:
    strength = round(target.units / UNITS, 4)
    return ShownLead(concept=name.concept, feature=name.feature, strength=strength)
