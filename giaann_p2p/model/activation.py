"""The state of a prompt: activation of the touched neurons, as dense tensors over local slots.

A[slot, branch, segment] is the activation in integer units of 2^-24, T the time of the last hit.
With integers, every device and every order of addition yields the same tokens.

One step, `Activation.fire`, takes the word just read or chosen:

1. emit: the strongest branch of its neuron gains 1 in every segment (only in the last one if the
   timing ignores order), so it remains the strongest;
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
import torch

from giaann_p2p.model.board import ONE, Board, Wiring
from giaann_p2p.model.manner import Timing
from giaann_p2p.model.rows import Neuron, Row
from giaann_p2p.model.sequence import Ints

_NEVER = -2
"""The time of a place that was never hit: no position is its successor."""

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
    own: torch.Tensor
    """Shape [B, SEG]: the fired neuron's part of A."""
    a: torch.Tensor
    """Shape [m]: A at the targets of the connections."""
    t: torch.Tensor | None
    """Shape [m]: T at these targets; None if the timing keeps no times."""


class Activation:
    """The tensors A and T of one prompt, under one timing."""

    def __init__(self, board: Board, timing: Timing) -> None:
        self.timing = timing
        self._board = board
        self._a = torch.zeros(0, dtype=torch.int64, device=board.device)
        self._t = torch.zeros(0, dtype=torch.int32, device=board.device)  # empty if not timed
        self._columns = 0  # the number of changes of concept so far
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

    def forget(self) -> None:
        """Reset to rest; the cost is proportional to what was touched."""
        for wiring in self._fired:
            self._own(wiring).zero_()
            self._a.scatter_(0, wiring.place, 0)
            if self.timing.timed:
                self._t.scatter_(0, wiring.place, _NEVER)
        self._columns = 0
        self._fired.clear()
        self._heard = None
        self._before.clear()

    def fire(self, wiring: Wiring) -> None:
        """Emit and fire a neuron."""
        self._make_room()
        if self._before.maxlen:
            self._before.append(self._as_it_is(wiring))
        if self._fired:
            self._columns += self._fired[-1].row.neuron.concept != wiring.row.neuron.concept
        self._fired.append(wiring)
        own = self._own(wiring)
        strongest = own[int(own.sum(1).argmax())]
        (strongest if self.timing.ordered else strongest[-1:]).add_(ONE)
        passes = self._gates(wiring)
        strongest.zero_()

        # Gather and scatter replace indexing, at a third of its cost on a CPU.
        a = self._a.gather(0, wiring.place)  # [m]
        a = a + (wiring.gain if passes is None else wiring.gain * passes)
        if not self._board.variant.graded_activations:
            a = torch.where(wiring.feature & (a > 0), ONE, a)
            own[:, self._board.spec.column_segments :].clamp_(max=1).mul_(ONE)
        self._a.scatter_(0, wiring.place, a)
        if self.timing.timed:
            now = torch.where(wiring.feature, self._position, self._columns).int()  # [m]
            if passes is not None:
                now = torch.where(passes, now, self._t.gather(0, wiring.place))
            self._t.scatter_(0, wiring.place, now)

    def candidates(self, anywhere: bool = False) -> Candidates:
        """Return the candidates after the word fired last.

        `anywhere`: also return candidates that the column rules exclude.
        """
        if not self._fired:
            raise ValueError("nothing was fired yet")
        wiring = self._fired[-1]
        spec = self._board.spec
        a = self._a.view(-1, spec.branches, spec.segments)[wiring.adjacent]  # [k, B, SEG]
        active = (a[:, :, -1] > 0).any(1).cpu().numpy()  # [k]
        score = self._scores(wiring, a).cpu().numpy()  # [k]
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
        spec, wiring = self._board.spec, self._fired[-1]
        row, last = wiring.row, spec.segments - 1
        later = np.flatnonzero((row.segment > spec.column_segments) & (row.segment < last))
        later = later[self._just_hit(wiring.place[later])]
        if len(later) > _MOST_FORESEEN:
            strongest = np.argpartition(-row.strength[later], _MOST_FORESEEN)[:_MOST_FORESEEN]
            later = later[strongest]
        slots = wiring.place[later] // (spec.branches * spec.segments)  # [n]
        a = self._a.view(-1, spec.branches, spec.segments)[slots]  # [n, B, SEG]
        score = a.amax(1).sum(1).cpu().numpy()  # [n]
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

    def _just_hit(self, place: torch.Tensor) -> npt.NDArray[np.bool_]:
        """Return which places the word fired last has hit, [n]."""
        hit = self._a.gather(0, place) > 0
        if self.timing.timed:
            hit &= self._t.gather(0, place) == self._position
        found: npt.NDArray[np.bool_] = hit.cpu().numpy()
        return found

    def _scores(self, wiring: Wiring, a: torch.Tensor) -> torch.Tensor:
        """Return the score of each candidate: the sum over segments of the best branch."""
        if self.timing is not Timing.BIASED:
            return a.amax(1).sum(1)
        active = a > 0
        kept = torch.where(active, a - ONE * self._lateness(wiring), torch.iinfo(a.dtype).min)
        return torch.where(active.any(1), kept.amax(1), 0).sum(1)

    def _lateness(self, wiring: Wiring) -> torch.Tensor:
        """Return the distance of each last hit from the time when it was due, [k, B, SEG].

        A feature segment stands for a distance of n tokens: its hit is due n tokens before its
        neuron. A column segment stands for a distance of n columns: its hit is due n columns before
        its neuron's column.
        """
        spec, row = self._board.spec, wiring.row
        segment = torch.arange(spec.segments, device=self._board.device)  # [SEG]
        feature = segment >= spec.column_segments
        due = torch.where(feature, spec.segments, spec.column_segments - 1) - segment
        moves = row.target_concept[wiring.adjacent_index] != np.uint64(row.neuron.concept)
        column = self._columns + torch.from_numpy(moves).to(due)[:, None]  # [k, 1]
        now = torch.where(feature, self._position + 1, column)[:, None]  # [k, 1, SEG]
        t = self._t.view(-1, spec.branches, spec.segments)[wiring.adjacent]
        return torch.where(t == _NEVER, 0, (now - t - due).abs())

    def _return_to(self, count: int) -> None:
        """Rewind to the state after `count` firings; reset to rest if snapshots are lacking."""
        if len(self._fired) - count > len(self._before):
            self.forget()
        while len(self._fired) > count:
            self._take_back()

    def _as_it_is(self, wiring: Wiring) -> _Before:
        t = self._t.gather(0, wiring.place) if self.timing.timed else None
        own, a = self._own(wiring).clone(), self._a.gather(0, wiring.place)
        return _Before(self._columns, own, a, t)

    def _take_back(self) -> None:
        before, wiring = self._before.pop(), self._fired.pop()
        self._columns = before.columns
        self._a.scatter_(0, wiring.place, before.a)
        self._own(wiring).copy_(before.own)
        if before.t is not None:
            self._t.scatter_(0, wiring.place, before.t)

    @property
    def _position(self) -> int:
        """The position of the token fired last."""
        return len(self._fired) - 1

    def _own(self, wiring: Wiring) -> torch.Tensor:
        """Return the fired neuron's part of A, [B, SEG]."""
        spec = self._board.spec
        width = spec.branches * spec.segments
        return self._a[wiring.slot * width :][:width].view(spec.branches, spec.segments)

    def _gates(self, wiring: Wiring) -> torch.Tensor | None:
        """Return which connections may pass, [m]; None if all may."""
        if not self.timing.ordered:
            return None
        ready = self._a.gather(0, wiring.before) > 0  # [m]
        if self.timing is Timing.EXACT:
            ready &= self._t.gather(0, wiring.before) == self._position - 1
        return ready | ~wiring.waits

    def _make_room(self) -> None:
        """Grow A and T to all slots of the board; new slots are at rest."""
        spec = self._board.spec
        need = len(self._board) * spec.branches * spec.segments
        if need <= len(self._a):
            return
        more = max(need, 2 * len(self._a)) - len(self._a)
        rest = torch.zeros(more, dtype=torch.int64, device=self._board.device)
        self._a = torch.cat([self._a, rest])
        if self.timing.timed:
            self._t = torch.cat([self._t, torch.full_like(rest, _NEVER, dtype=torch.int32)])
