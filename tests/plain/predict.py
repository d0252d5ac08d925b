"""Prediction: activation flows along connections and picks the next token (MODEL.md, section 4).

A ``Mind`` is a memory plus what the words fired so far have stirred up in it. Activations are
whole numbers of 2^-24 units, so that two implementations can be compared exactly.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from .learn import UNITS_PER_STRENGTH, Memory, Outgoing, Shape
from .sequence import Delimiter, DelimiterOf, Neuron

ONE = 2**24  # an activation of 1
TIMINGS = ("exact", "seq", "none", "biased")
AUTO_TIMINGS = ("exact", "seq", "none")  # from what is surely remembered to a mere guess


class Slot(NamedTuple):
    """Where activation sits: one segment of one branch of a neuron."""

    neuron: Neuron
    branch: int
    segment: int


class Candidate(NamedTuple):
    """A possible next token; ``adjacent`` is how strongly the fired word connects right to it."""

    neuron: Neuron
    score: int
    adjacent: int


class Prediction(NamedTuple):
    """A chosen token, and what makes it more or less trustworthy."""

    neuron: Neuron
    score: int
    candidates_count: int
    timing: str


@dataclass
class Mind:
    """One train of thought: feed it tokens with ``emit`` and ``fire``, ask for ``candidates``."""

    memory: Memory
    shape: Shape
    timing: str
    # The key to sort neurons by when nothing else tells two candidates apart.
    order: Callable[[Neuron], Any]
    delimiter_of: DelimiterOf
    boolean_strengths: bool = True
    boolean_activations: bool = True
    # What was stirred up so far. A slot that is not listed has activation 0, and no time.
    activation: dict[Slot, int] = field(default_factory=dict)
    # When a slot was last hit: a token position in a feature segment, a column time in a column
    # segment.
    time: dict[Slot, int] = field(default_factory=dict)
    position: int = 0  # of the token to fire next
    column_time: int = 0  # how often the concept changed from one fired token to the next
    fired: Neuron | None = None  # the last one

    def __post_init__(self) -> None:
        if self.timing not in TIMINGS:
            raise ValueError(f"timing is {self.timing!r}, but must be one of {TIMINGS}")

    def copy(self) -> "Mind":
        """A mind that goes on from here on its own; both remember the same."""
        return replace(self, activation=dict(self.activation), time=dict(self.time))

    def emit(self, neuron: Neuron) -> None:
        """The token was read, or chosen."""
        branch = self.strongest_branch(neuron)
        for segment in range(self.shape.segments):
            if self.timing in ("exact", "seq") or segment == self.last_segment:
                self.add(Slot(neuron, branch, segment), ONE)

    def fire(self, neuron: Neuron) -> None:
        """Send activation along all of the neuron's connections whose gates are open."""
        if self.fired is not None and self.fired.concept != neuron.concept:
            self.column_time += 1
        # All the gates are looked at before any activation moves.
        passing = [outgoing for outgoing in self.memory.row(neuron) if self.gate_is_open(outgoing)]
        # What came true is no longer expected. The published algorithm resets after adding. Here it
        # is before, for a word that leads to itself (the comma in a list of four) expects its next
        # repeat on the same branch. On wiki.txt with "exact" that is 0.9995 instead of 0.9968 fed
        # with the true tokens, and 0.9995 instead of 0.9638 fed with its own.
        self.reset(neuron)
        for outgoing in passing:
            slot = Slot(outgoing.target, outgoing.branch, outgoing.segment)
            self.add(slot, self.gain(outgoing.strength))
            self.time[slot] = self.position if self.is_feature(slot.segment) else self.column_time
        if self.boolean_activations:
            self.clamp()
        self.fired = neuron
        self.position += 1

    def candidates(self) -> list[Candidate]:
        """What may come right after the fired word, the best first."""
        if self.fired is None:
            return []
        adjacent: dict[Neuron, int] = {}
        for target, _, segment, strength in self.memory.row(self.fired):
            if segment == self.last_segment and self.may_follow(target):
                adjacent[target] = adjacent.get(target, 0) + strength
        found = [Candidate(target, self.score(target), adjacent[target]) for target in adjacent]
        return sorted(found, key=lambda c: (-c.score, -c.adjacent, self.order(c.neuron)))

    # Segments and branches

    @property
    def last_segment(self) -> int:
        """The one for adjacent tokens."""
        return self.shape.segments - 1

    def is_feature(self, segment: int) -> bool:
        return segment >= self.shape.column_segments

    def activation_of(self, slot: Slot) -> int:
        return self.activation.get(slot, 0)

    def add(self, slot: Slot, amount: int) -> None:
        self.activation[slot] = self.activation_of(slot) + amount

    def branch_slots(self, neuron: Neuron, branch: int) -> list[Slot]:
        return [Slot(neuron, branch, segment) for segment in range(self.shape.segments)]

    def segment_slots(self, neuron: Neuron, segment: int) -> list[Slot]:
        return [Slot(neuron, branch, segment) for branch in range(self.shape.branches)]

    def strongest_branch(self, neuron: Neuron) -> int:
        """The lowest one of those with the largest sum; so 0 for a neuron nothing has touched."""
        sums = [
            sum(self.activation_of(slot) for slot in self.branch_slots(neuron, branch))
            for branch in range(self.shape.branches)
        ]
        return sums.index(max(sums))

    # Parts of firing

    def gate_is_open(self, outgoing: Outgoing) -> bool:
        """Must the tokens before this one have led up to it, step by step?

        Feature segments are a chain: a token k places before its target hits the segment before
        the one that a token k - 1 places before it hits. So in a remembered sentence the segment
        before was hit by the token before. The first link of the chain has nothing to wait for.
        """
        if self.timing in ("none", "biased") or outgoing.segment <= self.shape.column_segments:
            return True
        before = Slot(outgoing.target, outgoing.branch, outgoing.segment - 1)
        on_time = self.timing == "seq" or self.time.get(before) == self.position - 1
        # A slot without a time is never on time, not even at position 0: None is not -1.
        return on_time and self.activation_of(before) > 0

    def gain(self, strength: int) -> int:
        """The activation that passes: 2 * (sigmoid(x / 100) - 1/2), which is tanh(x / 200)."""
        x = 1.0 if self.boolean_strengths else strength / UNITS_PER_STRENGTH
        return round(math.tanh(x / 200) * ONE)

    def clamp(self) -> None:
        """A feature segment is active or not; how much does not count."""
        for slot, amount in self.activation.items():
            if self.is_feature(slot.segment) and amount > 0:
                self.activation[slot] = ONE

    def reset(self, neuron: Neuron) -> None:
        """What was expected has come, so stop expecting it."""
        for slot in self.branch_slots(neuron, self.strongest_branch(neuron)):
            self.activation[slot] = 0

    # Parts of choosing

    def may_follow(self, target: Neuron) -> bool:
        """Only a delimiter leads out of its column, and only the expected may come."""
        assert self.fired is not None
        reachable = target.concept == self.fired.concept or self.is_delimiter(self.fired)
        slots = self.segment_slots(target, self.last_segment)
        return reachable and any(self.activation_of(slot) > 0 for slot in slots)

    def fired_word(self) -> str | None:
        return self.fired and (self.fired.feature or self.fired.concept)

    def is_delimiter(self, neuron: Neuron) -> bool:
        """A concept noun never is one, whatever else its word can be."""
        if neuron.feature is None:
            return False
        return self.delimiter_of(neuron.feature) is not Delimiter.NONE

    def score(self, target: Neuron) -> int:
        """In every segment the best branch counts."""
        total = 0
        for segment in range(self.shape.segments):
            slots = self.segment_slots(target, segment)
            active = [slot for slot in slots if self.activation_of(slot) > 0]
            total += max((self.activation_of(s) - self.penalty(s) for s in active), default=0)
        return total

    def penalty(self, slot: Slot) -> int:
        """Biased timing only: how far the slot's last hit is from when it was due.

        A hit is due as many tokens (or columns) before the target as the segment stands for.
        """
        if self.timing != "biased" or slot not in self.time:
            return 0
        if self.is_feature(slot.segment):
            now = self.position  # where the candidate would stand
            due = self.shape.segments - slot.segment
        else:
            assert self.fired is not None
            now = self.column_time + (slot.neuron.concept != self.fired.concept)
            due = self.shape.column_segments - 1 - slot.segment
        return abs((now - self.time[slot]) - due) * ONE


def feed(minds: Iterable[Mind], neuron: Neuron) -> None:
    for mind in minds:
        mind.emit(neuron)
        mind.fire(neuron)


def generate(
    make_mind: Callable[[str], Mind],
    prompt: Sequence[Neuron],
    limit: int,
    timing: str = "auto",
) -> list[Prediction]:
    """Go on from a prompt, for at most ``limit`` tokens.

    With timing "auto" three minds of different strictness think along; at every token the
    strictest one that has an idea speaks, and all of them hear it.
    """
    timings = AUTO_TIMINGS if timing == "auto" else (timing,)
    minds = [make_mind(one) for one in timings]
    for neuron in prompt:
        feed(minds, neuron)
    predictions: list[Prediction] = []
    while len(predictions) < limit:
        by_heart = bool(predictions) and predictions[-1].timing == "exact"
        prediction = predict_one(minds, by_heart)
        if prediction is None:
            break
        predictions.append(prediction)
        feed(minds, prediction.neuron)
    return predictions


def predict_one(minds: Sequence[Mind], by_heart: bool) -> Prediction | None:
    """The strictest mind's best; ``by_heart``: the exact one said the last word."""
    for mind in minds:
        candidates = mind.candidates()
        if len(minds) > 1 and mind.timing != "exact" and has_ended(mind, by_heart):
            return None  # with "auto", a sentence that is not known to go on has ended
        if candidates:
            best = candidates[0]
            return Prediction(best.neuron, best.score, len(candidates), mind.timing)
    return None


def has_ended(mind: Mind, by_heart: bool) -> bool:
    """With a full stop; or where a sentence that was followed to there was learned to end."""
    if mind.fired_word() in (".", "?", "!"):
        return True
    return by_heart and mind.fired in mind.memory.endings


@dataclass
class Hypothesis:
    """One way in which it might go on: what it began with, and how good it is in all."""

    mind: Mind
    first: Neuron | None = None
    total: int = 0

    def extend(self, width: int) -> "list[Hypothesis]":
        candidates = self.mind.candidates()[:width]
        if not candidates:
            return [self]  # nothing to add, but it may still be the best
        extended = []
        for candidate in candidates:
            mind = self.mind.copy()
            feed([mind], candidate.neuron)
            first = candidate.neuron if self.first is None else self.first
            extended.append(Hypothesis(mind, first, self.total + candidate.score))
        return extended


def beam_choice(mind: Mind, width: int, depth: int) -> Neuron | None:
    """The next token, chosen by looking ``depth`` tokens ahead along the ``width`` best ways."""
    hypotheses = [Hypothesis(mind)]
    for _ in range(depth):
        extended = [longer for one in hypotheses for longer in one.extend(width)]
        # A stable sort: equals stay in order of their parents' ranks, then of their own.
        extended.sort(key=lambda hypothesis: -hypothesis.total)
        hypotheses = extended[:width]
    return hypotheses[0].first
