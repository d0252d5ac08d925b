"""The profile "subwords" in plain Python: dictionaries and loops (MODEL2.md, sections 3 to 5).

It is the yardstick for the fast version, so it shares no code with it, and it favours being
obviously right over being quick. Tokens are their numbers; a prime feature is -1, so that it comes
first wherever neurons are sorted.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

UNITS_PER_STRENGTH = 2**16
DISTANCES = range(1, 6)
PRIME = -1
VOCABULARY = 200_019
DISCOUNT, ADDED = 0.9, 0.1
ALPHA = {2: 0.5, 3: 0.3, 4: 0.2, 5: 0.2}


class Neuron(NamedTuple):
    """A token in a column: the numbers of the column's concept token, and of the token."""

    home: int
    feature: int

    @property
    def token(self) -> int:
        return self.home if self.feature == PRIME else self.feature


class Position(NamedTuple):
    """One token of a sequence."""

    neuron: Neuron
    column: int
    delimiter: str = ""
    """`d` for a deterministic delimiter, `p` for a probabilistic one."""


class Connection(NamedTuple):
    """From one neuron to one segment of another."""

    source: Neuron
    target: Neuron
    segment: int


@dataclass
class Memory:
    """All that was learned. Strengths are whole numbers of units."""

    column_segments: int = 0
    occurrences: Counter[Neuron] = field(default_factory=Counter)
    connections: Counter[Connection] = field(default_factory=Counter)
    tokens: Counter[int] = field(default_factory=Counter)
    pairs: Counter[tuple[int, int, int]] = field(default_factory=Counter)
    """By the tokens of a pair, in any columns, and their distance: how often it occurred."""
    delimiters: Counter[tuple[str, int]] = field(default_factory=Counter)

    @property
    def segments(self) -> int:
        return self.column_segments + len(DISTANCES)

    def strength(self, source: Neuron, target: Neuron, segment: int) -> float:
        return self.connections[Connection(source, target, segment)] / UNITS_PER_STRENGTH

    def after(self, source: Neuron, distance: int) -> Counter[Neuron]:
        """How often each neuron came at a distance behind another."""
        found: Counter[Neuron] = Counter()
        for connection, units in self.connections.items():
            if (connection.source, connection.segment) == (source, self.segments - distance):
                found[connection.target] += units // increment(distance)
        return found

    def after_any(self, token: int, distance: int) -> Counter[int]:
        """How often each token came at a distance behind another, in any columns."""
        found: Counter[int] = Counter()
        for (left, right, apart), count in self.pairs.items():
            if (left, apart) == (token, distance):
                found[right] += count
        return found


def increment(distance: int) -> int:
    """10 / (distance + 1), in units, rounded to the nearest one."""
    return round(10 * UNITS_PER_STRENGTH / (distance + 1))


def learn(memory: Memory, sequence: Sequence[Position]) -> None:
    """Add one sequence: every ordered pair of its positions is connected, if it is near enough."""
    for a, left in enumerate(sequence):
        memory.occurrences[left.neuron] += 1
        memory.tokens[left.neuron.token] += 1
        if left.delimiter:
            memory.delimiters[left.delimiter, left.neuron.token] += 1
        for b in range(a + 1, len(sequence)):
            right, distance = sequence[b], b - a
            apart = right.column - left.column
            if distance in DISTANCES:
                near = Connection(left.neuron, right.neuron, memory.segments - distance)
                memory.connections[near] += increment(distance)
                memory.pairs[left.neuron.token, right.neuron.token, distance] += 1
            if apart < memory.column_segments:
                segment = memory.column_segments - 1 - apart
                far = Connection(left.neuron, right.neuron, segment)
                memory.connections[far] += increment(distance)


class Choice(NamedTuple):
    """A chosen token, its score, the number of candidates, and what spoke for it."""

    token: int
    score: float
    candidates: int
    basis: str


@dataclass
class Evidence:
    """What followed the last tokens, the nearest first; a number is a token of unknown column."""

    memory: Memory
    last: Sequence[Neuron | int]
    own: dict[int, Counter[int]] = field(default_factory=dict)
    anywhere: dict[int, Counter[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for distance in DISTANCES:
            self.own[distance], self.anywhere[distance] = Counter(), Counter()
            if distance <= len(self.last):
                one = self.last[distance - 1]
                if isinstance(one, Neuron):
                    for target, count in self.memory.after(one, distance).items():
                        self.own[distance][target.token] += count
                token = one.token if isinstance(one, Neuron) else one
                self.anywhere[distance] = self.memory.after_any(token, distance)

    def u(self, token: int) -> float:
        total = sum(self.memory.tokens.values())
        return (self.memory.tokens[token] + ADDED) / (total + ADDED * VOCABULARY)

    def p(self, token: int, distance: int) -> float:
        found = self.u(token)
        for counts in (self.anywhere[distance], self.own[distance]):
            if counts:
                rest = DISCOUNT * len(counts) * found
                found = (max(counts[token] - DISCOUNT, 0) + rest) / sum(counts.values())
        return found

    def score(self, token: int) -> float:
        found = math.log(self.p(token, 1))
        for distance, alpha in ALPHA.items():
            found += alpha * math.log(self.p(token, distance) / self.u(token))
        return found


def log_probability(memory: Memory, last: Sequence[Neuron | int], token: int) -> float:
    """The logarithm of a token's probability among all, each in proportion to exp(score).

    Tokens that never occurred are all alike: the score of one stands for theirs.
    """
    evidence = Evidence(memory, last)
    new = next(token for token in range(VOCABULARY) if not memory.tokens[token])
    known = [token for token, count in memory.tokens.items() if count]
    total = sum(math.exp(evidence.score(token)) for token in known)
    total += (VOCABULARY - len(known)) * math.exp(evidence.score(new))
    return evidence.score(token) - math.log(total)


def mix(memory: Memory, last: Sequence[Neuron | int]) -> Choice | None:
    """Choose from the last tokens, the nearest first; one of unknown column is only its number."""
    if not memory.tokens:
        return None
    evidence = Evidence(memory, last)
    own, anywhere, score = evidence.own, evidence.anywhere, evidence.score
    candidates, basis = set(anywhere[1]), "own" if own[1] else "any"
    if not candidates:
        token = min(memory.tokens, key=lambda token: (-memory.tokens[token], token))
        return Choice(token, math.log(evidence.u(token)), 0, "none")
    from_all = set.intersection(*(set(counts) for counts in own.values()))
    if from_all and any(len(counts) <= 2 for counts in own.values()):
        candidates, basis = from_all, "recall"
    best = min(candidates, key=lambda token: (-score(token), token))
    return Choice(best, score(best), len(candidates), basis)


def neuron_of(memory: Memory, token: int, last: Sequence[Neuron | int]) -> Neuron | None:
    """The neuron of a chosen token: the one of that token that the last own rows hit most."""
    hits: Counter[Neuron] = Counter()
    for distance, one in zip(DISTANCES, last, strict=False):
        if isinstance(one, Neuron):
            for target, count in memory.after(one, distance).items():
                if target.token == token:
                    hits[target] += count
    return min(hits, key=lambda one: (-hits[one], one)) if hits else None


def lif(memory: Memory, read: Sequence[Neuron], graded: bool) -> tuple[Neuron, float] | None:
    """Choose by the reference's read-out from all neurons read: graded and leaky, or neither."""
    keep = 0.25 if graded else 0.0
    w, segments = len(read), memory.column_segments

    def g(source: Neuron, target: Neuron, segment: int) -> float:
        strength = memory.strength(source, target, segment)
        return math.tanh((strength if graded else float(strength > 0)) / 200)

    def changes(i: int, j: int) -> int:
        return sum(read[k].home != read[k + 1].home for k in range(i, j))

    def score(n: Neuron) -> float:
        v = max((i + 1 for i in range(w) if read[i] == n), default=0)
        found = 0.0
        for u in range(v + 1, w + 1):
            for d in DISTANCES:
                if u - d >= 0:
                    found += keep ** (w - u) * g(read[u - d], n, memory.segments - d)
        for i in range(w):
            for c in range(segments):
                e = changes(i, w - 1) - c
                gone = not graded and v > 0 and i + 1 <= v and changes(i, v - 1) >= c
                if e >= 0 and not gone:
                    found += keep**e * g(read[i], n, segments - 1 - c)
        return found

    candidates = memory.after(read[-1], 1)
    if not candidates:
        return None
    scores = {n: score(n) for n in candidates}
    best = min(scores, key=lambda n: (-scores[n], n))
    last = read[-1]
    flagged = any(memory.delimiters[kind, last.feature] for kind in "dp")
    if scores[best] < (0.008 if graded else 0.004):
        return None
    return None if best.home != last.home and not flagged else (best, scores[best])
