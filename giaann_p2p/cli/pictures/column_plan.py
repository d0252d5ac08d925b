"""Plans the picture of a column: which words and connections it shows, and where each one goes.

The column's words stand at the left, one below the other. The neurons of other columns that they
lead to stand at the right, in a box for each column, near the words that lead to them.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from giaann_p2p.client.column import Column, ColumnWord
    from giaann_p2p.gateway.views import ShownColumn, ShownWord

MOST_LINKS = 128
"""Maximum number of connections to other columns in a picture; more could not be told apart."""
HEAD = 1.0
"""Height of a box's title, in rows."""
GAP = 0.6
"""Height of the space between two boxes, in rows."""
_APART = 2.5
"""Largest distance between two words of the column, in rows; the smallest is 1."""


class _Neuron(NamedTuple):
    concept: str
    feature: str | None
    """None for the concept's own noun."""


class Spot(NamedTuple):
    """A neuron in the picture; heights are in rows, from the top of the picture."""

    text: str
    y: float
    share: float
    """Occurrences of a word of the column, relative to the most frequent; 0 for other neurons."""


class Box(NamedTuple):
    """Another column in the picture, with those of its neurons that are shown."""

    concept: str
    top: float
    bottom: float


class Link(NamedTuple):
    """A connection between two neurons that are shown, each given by its index."""

    word: int
    target: int
    share: float
    """The strength, compared with that of the strongest connection."""


class Plan(NamedTuple):
    """All that a column's picture shows, and where."""

    words: list[Spot]
    boxes: list[Box]
    targets: list[Spot]
    links: list[Link]
    """The connections to other columns, strongest first."""
    inner: list[Link]
    """The connections between words of the column itself; `target` is the index of a word."""
    left_out: int
    """The number of weaker connections that are not shown."""
    height: float
    """The height of the picture, in rows."""


class _Lead(NamedTuple):
    word: int
    neuron: _Neuron
    strength: float


def plan_of(column: "Column | ShownColumn", most: int = MOST_LINKS) -> Plan:
    """Return the plan of a column's picture, with the `most` strongest connections to others."""
    shown_words: Sequence[ColumnWord | ShownWord] = column.words
    leads = [
        _Lead(at, _Neuron(lead.concept, lead.feature), lead.strength)
        for at, word in enumerate(shown_words)
        for lead in word.leads
    ]
    leads.sort(key=lambda lead: -lead.strength)  # stable: the same column, the same picture
    outer = [lead for lead in leads if lead.neuron.concept != column.concept]
    shown = outer[:most]
    index = {word.feature: at for at, word in enumerate(shown_words)}
    inner = [
        lead
        for lead in leads
        if lead.neuron.concept == column.concept and lead.neuron.feature in index
    ]
    boxes = _ordered(shown)
    tall = sum(HEAD + len(neurons) for neurons in boxes.values()) + GAP * max(0, len(boxes) - 1)
    height = max(float(len(column.words)), tall, 1.0)
    words = _words(column, height)
    placed, spots = _placed(boxes, (height - tall) / 2)
    number = {neuron: at for at, neuron in enumerate(chain.from_iterable(boxes.values()))}
    strongest = max((lead.strength for lead in leads), default=1.0) or 1.0
    return Plan(
        words,
        placed,
        spots,
        [Link(one.word, number[one.neuron], one.strength / strongest) for one in shown],
        [Link(one.word, index[one.neuron.feature], one.strength / strongest) for one in inner],
        len(outer) - len(shown),
        height,
    )


def _text(neuron: _Neuron) -> str:
    """Return how a neuron is written: its feature, or its concept's own noun between asterisks."""
    return f"*{neuron.concept}*" if neuron.feature is None else neuron.feature


def _words(column: "Column | ShownColumn", height: float) -> list[Spot]:
    """Return the column's words, in the middle of a picture of this height."""
    shown: Sequence[ColumnWord | ShownWord] = column.words
    names = [_text(_Neuron(column.concept, word.feature)) for word in shown]
    most = max((word.occurrences for word in shown), default=1) or 1
    apart = min(_APART, height / max(1, len(names)))
    top = (height - apart * len(names)) / 2
    return [
        Spot(name, top + apart * (at + 0.5), word.occurrences / most)
        for at, (name, word) in enumerate(zip(names, shown, strict=True))
    ]


def _ordered(leads: Sequence[_Lead]) -> dict[str, list[_Neuron]]:
    """Return the target neurons by concept, each near the words that lead to it."""
    pulls: dict[_Neuron, list[tuple[float, float]]] = {}
    for lead in leads:
        pulls.setdefault(lead.neuron, []).append((float(lead.word), lead.strength))
    height = {neuron: _mean(found) for neuron, found in pulls.items()}
    boxes: dict[str, list[_Neuron]] = {}
    for neuron in sorted(pulls, key=lambda one: (height[one], one.concept, one.feature or "")):
        boxes.setdefault(neuron.concept, []).append(neuron)
    middle = {
        concept: _mean(pull for neuron in neurons for pull in pulls[neuron])
        for concept, neurons in boxes.items()
    }
    order = sorted(boxes, key=lambda concept: (middle[concept], concept))
    return {concept: boxes[concept] for concept in order}


def _mean(pulls: Iterable[tuple[float, float]]) -> float:
    """Return the weighted mean of heights, given with their weights."""
    found = list(pulls)
    total = sum(weight for _, weight in found)
    return sum(height * weight for height, weight in found) / total if total else found[0][0]


def _placed(boxes: dict[str, list[_Neuron]], top: float) -> tuple[list[Box], list[Spot]]:
    placed, spots = list[Box](), list[Spot]()
    for concept, neurons in boxes.items():
        bottom = top + HEAD + len(neurons)
        placed.append(Box(concept, top, bottom))
        for at, neuron in enumerate(neurons):
            spots.append(Spot(_text(neuron), top + HEAD + at + 0.5, 0.0))
        top = bottom + GAP
    return placed, spots
