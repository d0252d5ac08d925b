"""The activations of all minds of a peer, in two flat arrays: one operation serves them all.

A[slot, branch, segment] is the activation in integer units of 2^-24, T the time of the last hit.
With integers, every device and every order of addition yields the same tokens. A lane is the state
of one mind under one timing: a range of slots in both arrays. One step, `Lanes.run`, fires the word
that was just read or chosen, in each of N lanes:

1. emit: the strongest branch of its neuron gains 1 in every segment. Only the gates of `seq` can
   see this before the reset, so only `seq` does it;
2. gate: select the connections that may pass, by T as it is now;
3. reset: that branch becomes 0, because the expected word has come;
4. add: the gain of the selected connections is added at their targets; with boolean activations,
   feature segments are then clamped to 0 or 1.

This departs from the published algorithm, which resets after adding (3 after 4). There, a word that
leads to itself (the third comma of a list) erases the very branch on which it has just begun to
expect its repeat. On the tests' wiki.txt, with `exact`, resetting after adding gives an accuracy of
0.9968 when fed with the true tokens and 0.9638 with its own; resetting before, 0.9995 and 0.9995.

The gate of a connection compares the time of the segment before its target with the least time that
its lane accepts: that of the token before (`exact`), of any token (`seq`), or 0 (`none`, `biased`).
So T is 0 in places that were never hit or were reset. The first feature segment waits for none.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from giaann_p2p.model.arrays import Array, Arrays, Host
from giaann_p2p.model.board import EQUAL_GAIN, ONE, Wiring
from giaann_p2p.model.candidates import LOWEST
from giaann_p2p.model.manner import Variant
from giaann_p2p.model.sequence import Ints
from giaann_p2p.model.spec import ModelSpec

FIRST = 2
"""The time of the first token and column; even the time before it exceeds 0, that of no hit."""
EMITTED = 1
"""The time of an emission: before all tokens."""
_LEAST_SLOTS = 1 << 12
_SPILL = 0
"""The place that receives the hits that do not pass their gates; it belongs to no lane."""


class Firing(NamedTuple):
    """A word to fire in a lane."""

    wiring: Wiring
    start: int
    """The first slot of the lane."""
    least: int
    """The least time that a gate accepts."""
    now: int
    """The time of the word."""
    column: int
    """The time of the word's column."""
    emits: bool


class Scoring(NamedTuple):
    """A lane whose candidates are to be scored, after the row that it has fired last."""

    wiring: Wiring
    start: int
    now: int
    column: int
    ahead: bool
    """Whether to score also the neurons that may come after the next word."""


class Kind(NamedTuple):
    """What all lanes of one run have in common."""

    variant: Variant
    biased: bool


class Lanes:
    """The arrays A and T of all lanes."""

    def __init__(self, spec: ModelSpec, arrays: Arrays) -> None:
        self._spec, self._arrays = spec, arrays
        self._places = spec.branches * spec.segments
        segment = np.arange(spec.segments)
        feature = segment >= spec.column_segments
        due = np.where(feature, spec.segments - 1, spec.column_segments - 1) - segment
        self._feature, self._due = arrays.send([np.array([feature, due], np.int64)])[0]  # [SEG]
        self._set(arrays.zeros(self._places), arrays.zeros(self._places))

    def __len__(self) -> int:
        """Return the number of slots allocated."""
        return len(self._a) // self._places

    def grow(self, slots: int) -> None:
        """Make room for at least this many slots; new slots are 0."""
        count = max(slots, 2 * len(self), _LEAST_SLOTS) * self._places
        a, t = (self._arrays.zeros(count) for _ in range(2))
        a[: len(self._a)] = self._a
        t[: len(self._t)] = self._t
        self._set(a, t)

    def copy(
        self, wirings: Sequence[Sequence[Wiring]], origin: list[int], start: list[int]
    ) -> None:
        """Copy the places that fired rows have touched to other lanes, given the first slots.

        Each row should be given only once for a lane, because the time is that of all rows given.
        """
        source, to = (self._touched(wirings, starts) for starts in (origin, start))
        self._a[to] = self._a[source]
        self._t[to] = self._t[source]

    def clear(self, wirings: Sequence[Sequence[Wiring]], start: list[int]) -> None:
        """Reset lanes to 0, given each lane's fired rows; nothing else has touched the lane."""
        touched = self._touched(wirings, start)
        self._a[touched] = 0
        self._t[touched] = 0

    def run(
        self, kind: Kind, firings: Sequence[Firing], scorings: Sequence[Scoring]
    ) -> list[tuple[Ints, Ints]]:
        """Fire one word in each of N lanes, then score the candidates of M lanes.

        Return for each of the M lanes the scores of the targets that may come next, [k], and of
        those that may come later, [h] (empty unless asked for); LOWEST for inactive ones.
        Everything goes to the device in one copy, and comes back in one.
        """
        wirings = [one.wiring for one in firings] + [one.wiring for one in scorings]
        fresh = dict.fromkeys([wiring for wiring in wirings if not wiring.sent])
        parts = [part for wiring in fresh for part in wiring.parts]
        fire, score = self._of_firings(firings), self._of_scorings(kind, scorings)
        sent = self._arrays.send([*fire, *score, *parts])
        at = len(fire) + len(score)
        for wiring in fresh:
            wiring.parts, wiring.sent = sent[at : at + len(wiring.parts)], True
            at += len(wiring.parts)
        if firings:
            self._fire(kind, firings, *sent[: len(fire)])
        if not scorings:
            return []
        table, *more = sent[len(fire) : len(fire) + len(score)]
        return _cut(self._score(kind, scorings, table, more), scorings)

    # What goes to the device.

    def _of_firings(self, firings: Sequence[Firing]) -> list[Host]:
        if not firings:
            return []
        columns = [
            [one.start * self._places for one in firings],
            [one.start + one.wiring.slot for one in firings],
            [one.least for one in firings],
            [one.now for one in firings],
            [one.column for one in firings],
            [one.wiring.columns for one in firings],
            [one.wiring.features for one in firings],
        ]
        emits = [n for n, one in enumerate(firings) if one.emits]
        return [np.array(columns), *([np.array(emits)] if emits else [])]

    def _of_scorings(self, kind: Kind, scorings: Sequence[Scoring]) -> list[Host]:
        if not scorings:
            return []
        sizes = [len(one.wiring.inside) for one in scorings]
        found: list[Host] = [np.array([[one.start for one in scorings], sizes])]  # [2, M]
        aheads = [(one, one.wiring.ahead) for one in scorings if one.ahead]
        if aheads:
            size = self._places
            found += [
                np.concatenate([ahead.slot + one.start for one, ahead in aheads]),
                np.concatenate([ahead.place + one.start * size for one, ahead in aheads]),
                np.repeat([one.now for one, _ in aheads], [len(a.slot) for _, a in aheads]),
            ]
        if kind.biased:
            moves = np.concatenate([~one.wiring.inside for one in scorings])  # [k of all]
            found += [
                np.repeat([one.now for one in scorings], sizes),
                np.repeat([one.column for one in scorings], sizes) + moves,
            ]
        return found

    # What runs on the device.

    def _fire(
        self, kind: Kind, firings: Sequence[Firing], table: Array, emits: Array | None = None
    ) -> None:
        arrays, a, t = self._arrays, self._a, self._t
        parts = list(zip(*(one.wiring.parts for one in firings), strict=True))
        base, slot, least, now, time, columns, features = table  # [N] each
        strongest = self._a_by_slot[slot].sum(2).argmax(1)  # [N]
        strongest += slot * self._spec.branches  # now as an index of [slot and branch]
        if emits is not None:
            self._t_by_branch[strongest[emits]] = EMITTED
        total = sum([one.wiring.features for one in firings])
        feature = arrays.joined(parts[1]) + arrays.spread(base, features, total)  # [f of all]
        passes = t[feature - 1] >= arrays.joined(parts[2]) * arrays.spread(least, features, total)
        self._a_by_branch[strongest] = 0
        self._t_by_branch[strongest] = 0

        total = sum([one.wiring.columns for one in firings])
        column = arrays.joined(parts[0]) + arrays.spread(base, columns, total)  # [c of all]
        graded = kind.variant.graded_strengths
        a[column] += arrays.joined(parts[4]) if graded else EQUAL_GAIN
        hit = arrays.where(passes, feature, _SPILL)
        if kind.variant.graded_activations:
            a[hit] += arrays.joined(parts[5]) if graded else EQUAL_GAIN
        else:
            a[hit] = ONE
        t[hit] = arrays.spread(now, features, len(hit))
        if kind.biased:
            t[column] = arrays.spread(time, columns, total)

    def _score(
        self, kind: Kind, scorings: Sequence[Scoring], table: Array, more: Sequence[Array]
    ) -> Host:
        """Return the scores of all adjacent targets, then of all those ahead, on the host."""
        arrays = self._arrays
        start, counts = table  # [M] each
        total = sum([len(one.wiring.inside) for one in scorings])
        slots = arrays.joined([one.wiring.parts[3] for one in scorings])
        slots = slots + arrays.spread(start, counts, total)  # [k of all]
        a = self._a_by_slot[slots]  # [k, B, SEG]
        best = arrays.highest(a)  # [k, SEG]
        active = best[:, -1] > 0
        if kind.biased:
            late = self._lateness(slots, *more[-2:])
            kept = arrays.where(a > 0, a - ONE * late, LOWEST)
            best = arrays.where(best > 0, arrays.highest(kept), 0)
        found = arrays.where(active, best.sum(1), LOWEST)  # [k]
        if any(one.ahead for one in scorings):
            ahead, place, hit = more[:3]
            best = arrays.highest(self._a_by_slot[ahead])  # [h of all, SEG]
            later = arrays.where(self._t[place] == hit, best.sum(1), LOWEST)
            found = arrays.joined([found, later])
        return arrays.host(found)

    def _lateness(self, slots: Array, now: Array, column: Array) -> Array:
        """Return the distance of each last hit from the time when it was due, [k, B, SEG].

        A feature segment stands for a distance of n tokens: its hit is due n tokens before its
        neuron. A column segment stands for a distance of n columns: its hit is due n columns before
        its neuron's column, whose time is `column`.
        """
        at = self._arrays.where(self._feature > 0, now[:, None], column[:, None])  # [k, SEG]
        return abs((at - self._due)[:, None] - self._t_by_slot[slots])

    # The arrays.

    def _set(self, a: Array, t: Array) -> None:
        spec = self._spec
        self._a, self._t = a, t
        self._a_by_slot, self._t_by_slot = (
            x.reshape(-1, spec.branches, spec.segments) for x in (a, t)
        )
        self._a_by_branch, self._t_by_branch = (x.reshape(-1, spec.segments) for x in (a, t))

    def _touched(self, wirings: Sequence[Sequence[Wiring]], start: list[int]) -> Array:
        """Return the places that some rows touch in each lane."""
        arrays = self._arrays
        counts = [sum(w.columns + w.features for w in fired) for fired in wirings]
        table = np.array([start, counts], np.int64)
        base, count = arrays.send([table])[0]
        parts = [part for fired in wirings for w in fired for part in w.parts[:2]]
        return arrays.joined(parts) + arrays.spread(base * self._places, count, sum(counts))


def _cut(found: Host, scorings: Sequence[Scoring]) -> list[tuple[Ints, Ints]]:
    """Return each lane's part of the scores."""
    at, later, cut = 0, sum(len(one.wiring.inside) for one in scorings), []
    for one in scorings:
        end = at + len(one.wiring.inside)
        after = later + (len(one.wiring.ahead.slot) if one.ahead else 0)
        cut.append((found[at:end], found[later:after]))
        at, later = end, after
    return cut
