"""The state of a prompt: activation of the touched neurons, as dense arrays over local slots.

A[slot, branch, segment] is the activation in integer units of 2^-24, T the time of the last hit.
With integers, every device and every order of addition yields the same tokens.

One step, `Activation.fire`, takes the word just read or chosen:

1. emit: the strongest branch of its neuron gains 1 in every segment. Only the gates of `seq` can
   see this before the reset, so only `seq` does it;
2. gate: select the connections that may pass, by A and T as they are now;
3. reset: that branch becomes 0, because the expected word has come;
4. add: the gain of the selected connections is added at their targets; with boolean activations,
   feature segments are then clamped to 0 or 1.

This departs from the published algorithm, which resets after adding (3 after 4). There, a word that
leads to itself (the third comma of a list) erases the very branch on which it has just begun to
expect its repeat. On the tests' wiki.txt, with `exact`, resetting after adding gives an accuracy of
0.9968 when fed with the true tokens and 0.9638 with its own; resetting before, 0.9995 and 0.9995.

A state can also be rewound: `follow` undoes firings of another prompt, or of another continuation
of this one. So all paths of a beam search share one state, and no state is ever copied.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import starmap, takewhile
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.arrays import Array
from giaann_p2p.model.board import ONE, Board, Wiring
from giaann_p2p.model.manner import Timing
from giaann_p2p.model.rows import Neuron, Row
from giaann_p2p.model.sequence import Ints

_NEVER, _FIRST = 0, 2
"""The time of a place that was never hit, and that of the first token and column: nothing follows
on a place that was never hit."""

_LOWEST = -(1 << 62)

_MOST_FORESEEN = 256
"""The most connections that `foreseen` considers; if there are more, it takes the strongest."""

_MOST_TAKEN_BACK = 32
"""The number of firings that can be undone, a bound on memory. To rewind further, all words are
fired again."""


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
        row, lost = self.wiring.row, -self.score
        good = np.arange(len(self))
        if most < len(good):  # only the best, and their ties, need sorting
            good = np.flatnonzero(lost <= np.partition(lost, most - 1)[most - 1])
        index = self.index[good]
        names = row.target_feature[index], row.target_concept[index]
        return good[np.lexsort((*names, -self.strength[good], lost[good]))[:most]]

    def neuron(self, at: int) -> Neuron:
        """Return the neuron at a position."""
        row, index = self.wiring.row, self.index[at]
        return Neuron(int(row.target_concept[index]), int(row.target_feature[index]))

    def neurons(self) -> list[Neuron]:
        """Return all neurons, in order of position."""
        row = self.wiring.row
        concepts = row.target_concept[self.index].tolist()
        return list(map(Neuron, concepts, row.target_feature[self.index].tolist()))


class _Before(NamedTuple):
    """A snapshot of the values that a firing will change, from which it is undone."""

    columns: int
    own: Array
    """Shape [B, SEG]: the fired neuron's part of A."""
    a: Array
    """Shape [m]: A at the targets of the connections."""
    t: Array | None
    """Shape [m]: T at these targets; None if the timing keeps no times."""


class Activation:
    """The arrays A and T of one prompt, under one timing."""

    def __init__(self, board: Board, timing: Timing) -> None:
        self.timing = timing
        self._board = board
        self._a = board.arrays.zeros(0, "int64")
        self._by_slot = self._a  # the same as [slot, branch, segment]
        self._t = board.arrays.zeros(0, "int32")  # empty if not timed
        self._columns = _FIRST  # the column's time: it counts changes of concept
        self._fired: list[Wiring] = []
        self._heard: Sequence[Row] | None = None  # the rows that are followed
        self._before = deque[_Before](maxlen=0)  # snapshots of the last firings, latest last

    def branch(self) -> None:
        """Keep snapshots from here on, so that `follow` can rewind to this point."""
        if not self._before.maxlen:
            self._before = deque(maxlen=_MOST_TAKEN_BACK)

    def follow(self, heard: Sequence[Row]) -> None:
        """Bring the state to having fired exactly these rows, whatever was fired before.

        A sequence that is followed may grow, but must not change otherwise; this is not checked.
        """
        if heard is not self._heard:
            both = zip(self._fired, heard, strict=False)
            shared = takewhile(lambda pair: pair[0].row.neuron == pair[1].neuron, both)
            self._return_to(sum(1 for _ in shared))
            self._heard = heard
        for row in heard[len(self._fired) :]:
            self.fire(self._board.wire(row))

    def forget(self, board: Board | None = None) -> None:
        """Reset to rest, on another board if one is given; it costs as much as was touched."""
        for wiring in self._fired:
            self._by_slot[wiring.slot] = 0
            self._a[wiring.place] = 0
            if self.timing.timed:
                self._t[wiring.place] = _NEVER
        self._columns = _FIRST
        self._fired.clear()
        self._heard = None
        self._before.clear()
        self._board = board or self._board

    def fire(self, wiring: Wiring) -> None:
        """Emit and fire a neuron."""
        self._make_room()
        if self._before.maxlen:
            self._before.append(self._as_it_is(wiring))
        if self._fired:
            self._columns += self._fired[-1].row.neuron.concept != wiring.row.neuron.concept
        self._fired.append(wiring)
        own = self._by_slot[wiring.slot]  # [B, SEG]
        strongest = own[int(own.sum(1).argmax())]
        if self.timing is Timing.SEQ:
            strongest += ONE
        passes = self._gates(wiring)
        strongest[:] = 0

        a = self._a[wiring.place]  # [m]
        column, hit = a[: wiring.columns], a[wiring.columns :]
        column += wiring.column_gain
        if self._board.variant.graded_activations:
            hit += wiring.feature_gain if passes is None else wiring.feature_gain * passes
        else:
            hit[... if passes is None else passes] = ONE
        self._a[wiring.place] = a
        if self.timing.timed:
            self._note_times(wiring, passes)

    def candidates(self, anywhere: bool = False) -> Candidates:
        """Return the candidates after the word fired last.

        `anywhere`: also return candidates that the column rules exclude.
        """
        if not self._fired:
            raise ValueError("nothing was fired yet")
        wiring = self._fired[-1]
        arrays = self._board.arrays
        a = self._by_slot[wiring.adjacent]  # [k, B, SEG]
        best = arrays.host(arrays.highest(a))  # [k, SEG]
        active = best[:, -1] > 0
        if self.timing is Timing.BIASED:
            best = arrays.host(self._timely(wiring, a))
        score = best.sum(1)
        chosen = active if anywhere else active & wiring.reachable
        return Candidates(
            wiring,
            wiring.adjacent_index[chosen],
            score[chosen],
            wiring.adjacent_strength[chosen],
        )

    def foreseen(self, most: int) -> list[Neuron]:
        """Guess which neurons come after the next word, as a hint for prefetching their rows.

        The word fired last has hit the last but one segment of neurons two tokens ahead, the one
        before that of neurons three ahead, and so on. The result has the best `most` neurons of
        each such segment, the nearest first. For the next word itself, use `candidates`.
        """
        if not self._fired:
            return []
        spec, arrays, wiring = self._board.spec, self._board.arrays, self._fired[-1]
        row, last = wiring.row, spec.segments - 1
        reached = row.segment[wiring.feature]
        at = np.flatnonzero((reached > spec.column_segments) & (reached < last))
        place = arrays.host(wiring.place)[wiring.columns :][at]
        hit = self._just_hit(place)
        later, place = wiring.feature[at[hit]], place[hit]
        if len(later) > _MOST_FORESEEN:
            strongest = np.argpartition(-row.strength[later], _MOST_FORESEEN)[:_MOST_FORESEEN]
            later, place = later[strongest], place[strongest]
        slots = place // (spec.branches * spec.segments)  # [n]
        a = self._by_slot[arrays.of(slots)]  # [n, B, SEG]
        score = arrays.host(arrays.highest(a).sum(1))  # [n]
        found: dict[Neuron, None] = {}
        for segment in range(last - 1, spec.column_segments, -1):
            here = np.flatnonzero(row.segment[later] == segment)
            best = later[here[np.lexsort((-row.strength[later[here]], -score[here]))[:most]]]
            at = row.target[best]
            named = zip(
                row.target_concept[at].tolist(), row.target_feature[at].tolist(), strict=True
            )
            found.update(dict.fromkeys(starmap(Neuron, named)))
        return list(found)

    def _just_hit(self, place: Ints) -> npt.NDArray[np.bool_]:
        """Return which places the word fired last has hit, [n]."""
        at = self._board.arrays.of(place)
        hit = self._a[at] > 0
        if self.timing.timed:
            hit &= self._t[at] == self._position
        found: npt.NDArray[np.bool_] = self._board.arrays.host(hit)
        return found

    def _timely(self, wiring: Wiring, a: Array) -> Array:
        """Return the best branch of each segment, [k, SEG], less what the wrong time takes off."""
        arrays, active = self._board.arrays, a > 0
        kept = arrays.where(active, a - ONE * self._lateness(wiring), _LOWEST)
        return arrays.where(active.any(1), arrays.highest(kept), 0)

    def _lateness(self, wiring: Wiring) -> Array:
        """Return the distance of each last hit from the time when it was due, [k, B, SEG].

        A feature segment stands for a distance of n tokens: its hit is due n tokens before its
        neuron. A column segment stands for a distance of n columns: its hit is due n columns before
        its neuron's column.
        """
        spec, arrays, row = self._board.spec, self._board.arrays, wiring.row
        segment = np.arange(spec.segments)  # [SEG]
        feature = segment >= spec.column_segments
        due = np.where(feature, spec.segments, spec.column_segments - 1) - segment
        moves = row.target_concept[wiring.adjacent_index] != np.uint64(row.neuron.concept)
        column = self._columns + moves[:, None]  # [k, 1]
        now = np.where(feature, self._position + 1, column)  # [k, SEG]
        t = self._t.reshape(-1, spec.branches, spec.segments)[wiring.adjacent]
        late = abs(arrays.of((now - due)[:, None]) - t)  # [k, B, SEG]
        return arrays.where(t == _NEVER, 0, late)

    def _return_to(self, count: int) -> None:
        """Rewind to the state after `count` firings; reset to rest if snapshots are lacking."""
        if len(self._fired) - count > len(self._before):
            self.forget()
        while len(self._fired) > count:
            self._take_back()

    def _as_it_is(self, wiring: Wiring) -> _Before:
        t = self._t[wiring.place] if self.timing.timed else None
        own = self._by_slot[wiring.slot] + 0  # a copy
        return _Before(self._columns, own, self._a[wiring.place], t)

    def _take_back(self) -> None:
        before, wiring = self._before.pop(), self._fired.pop()
        self._columns = before.columns
        self._a[wiring.place] = before.a
        self._by_slot[wiring.slot] = before.own
        if before.t is not None:
            self._t[wiring.place] = before.t

    @property
    def _position(self) -> int:
        """The time of the token fired last."""
        return _FIRST + len(self._fired) - 1

    def _gates(self, wiring: Wiring) -> Array | None:
        """Return which connections to feature segments may pass, [f]; None if all may."""
        if not self.timing.ordered:
            return None
        before = wiring.place[wiring.columns :] - 1
        if self.timing is Timing.SEQ:
            ready = self._a[before] > 0
        else:  # what was hit by the token before is active: only its own token resets a neuron
            ready = self._t[before] == self._position - 1
        return ready | wiring.begins

    def _note_times(self, wiring: Wiring, passes: Array | None) -> None:
        """Note when the targets were hit: only `biased` looks at those in column segments."""
        column, feature = wiring.place[: wiring.columns], wiring.place[wiring.columns :]
        if passes is None:
            self._t[column] = self._columns
            self._t[feature] = self._position
        else:
            hit = self._t[feature]
            hit[passes] = self._position
            self._t[feature] = hit

    def _make_room(self) -> None:
        """Grow A and T to all slots of the board; new slots are at rest."""
        spec = self._board.spec
        need = len(self._board) * spec.branches * spec.segments
        if need <= len(self._a):
            return
        self._a = self._grown(self._a, max(need, 2 * len(self._a)))
        self._by_slot = self._a.reshape(-1, spec.branches, spec.segments)
        if self.timing.timed:
            self._t = self._grown(self._t, len(self._a))

    def _grown(self, array: Array, count: int) -> Array:
        grown = self._board.arrays.zeros(count, str(array.dtype).removeprefix("torch."))
        grown[: len(array)] = array
        return grown
