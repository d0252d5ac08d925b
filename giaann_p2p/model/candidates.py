"""The neurons that may come next, with their scores, on the host."""

from dataclasses import dataclass
from itertools import starmap

import numpy as np

from giaann_p2p.model.board import Wiring
from giaann_p2p.model.rows import Neuron
from giaann_p2p.model.sequence import Ids, Ints

LOWEST = -(1 << 62)
"""The score of a neuron that cannot come next."""


@dataclass(frozen=True)
class Candidates:
    """The neurons that may come next: k of them, all active."""

    wiring: Wiring
    index: Ints
    """Shape [k]: each candidate's index among the row's targets."""
    score: Ints
    """Shape [k]: each candidate's score, in units of ONE."""
    strength: Ints
    """Shape [k]: the strength of the adjacent connection to each candidate."""

    def __len__(self) -> int:
        return len(self.index)

    def ranked(self, most: int) -> Ints:
        """Return the positions of the best `most` candidates, best first.

        Ties in score are broken by the strength of the adjacent connection, then by concept, then
        by feature.
        """
        count = len(self)
        if most < count:  # only the best, and their ties, need sorting
            least = self.score.max() if most == 1 else np.partition(self.score, -most)[-most]
            good: Ints = (self.score >= least).nonzero()[0]
        else:
            good = np.arange(count)
        if len(good) < 2:
            return good
        row, index = self.wiring.row, self.index[good]
        names = row.target_feature[index], row.target_concept[index]
        order = np.lexsort((*names, -self.strength[good], -self.score[good]))
        return good[order[:most]]

    def __contains__(self, neuron: Neuron) -> bool:
        row = self.wiring.row
        same = self.index[row.target_feature[self.index] == np.uint64(neuron.feature)]
        return neuron.concept in row.target_concept[same].tolist()

    def neuron(self, at: int) -> Neuron:
        """Return the neuron at a position."""
        row, index = self.wiring.row, self.index[at]
        return Neuron(int(row.target_concept[index]), int(row.target_feature[index]))

    def share(self, at: int) -> float:
        """Return a candidate's share of the strengths of all adjacent connections."""
        return int(self.strength[at]) / int(self.strength.sum())

    def ids(self) -> tuple[Ids, Ids]:
        """Return the concepts and features of all neurons, in order of position."""
        row = self.wiring.row
        return row.target_concept[self.index], row.target_feature[self.index]

    def neurons(self) -> list[Neuron]:
        """Return all neurons, in order of position."""
        return neurons_at(self.wiring, self.index)


def scored(wiring: Wiring, score: Ints, anywhere: bool) -> Candidates:
    """Return the candidates of a row, given the scores of all its adjacent targets, [k].

    `anywhere`: also return candidates that the column rules exclude.
    """
    active = score > LOWEST
    at = (active if anywhere else active & wiring.reachable).nonzero()[0]
    return Candidates(wiring, wiring.adjacent_index[at], score[at], wiring.adjacent_strength[at])


def foreseen(wiring: Wiring, score: Ints, most: int) -> list[Neuron]:
    """Guess which neurons come after the next word, given the scores of the neurons `ahead`, [h].

    The word fired last has hit the last but one segment of neurons two tokens ahead, the one before
    that of neurons three ahead, and so on. The result has the best `most` neurons of each such
    segment, the nearest first.
    """
    ahead, found = wiring.ahead, dict[Neuron, None]()
    active = (score > LOWEST).nonzero()[0]
    order = active[np.lexsort((-ahead.strength[active], -score[active], -ahead.segment[active]))]
    segment = ahead.segment[order]  # descending, so the best of each segment come first
    first = np.searchsorted(-segment, -segment)
    best = order[np.arange(len(order)) - first < most]
    found.update(dict.fromkeys(neurons_at(wiring, ahead.target[best])))
    return list(found)


def neurons_at(wiring: Wiring, index: Ints) -> list[Neuron]:
    """Return the row's targets at these indices."""
    row = wiring.row
    concepts, features = row.target_concept[index].tolist(), row.target_feature[index].tolist()
    return list(starmap(Neuron, zip(concepts, features, strict=True)))
