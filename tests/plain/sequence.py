"""From the tokens of one sentence to its sequence of neurons (MODEL.md, section 2, steps 3 to 7).

Nothing here depends on what was learned before: the same tokens always give the same neurons.
"""

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from itertools import pairwise
from typing import NamedTuple

NOUN_TAGS = frozenset({"NOUN", "PROPN"})
DASHES = frozenset({"-", "\N{EN DASH}"})


class Token(NamedTuple):
    """One word of a sentence, as the tagger sees it; ``pos`` is the coarse tag (``NOUN``)."""

    text: str
    lemma: str
    pos: str


class Neuron(NamedTuple):
    """A word inside a concept's column; ``feature`` is None for the concept noun itself."""

    concept: str
    feature: str | None


class Position(NamedTuple):
    """One place of a sequence: its neuron, and which column of the sequence (0, 1, ...) it is in.

    Two columns of one sequence may carry the same concept; the ordinal keeps them apart.
    """

    neuron: Neuron
    column: int


class Delimiter(Enum):
    """How firmly a word ends a column."""

    NONE = 0
    PROBABILISTIC = 1
    DETERMINISTIC = 2


DelimiterOf = Callable[[str], Delimiter]
"""The delimiter class of a word, asked with its lower-case text."""


def sequence(tokens: Sequence[Token], delimiter_of: DelimiterOf) -> list[Position] | None:
    """The neurons of one sentence in order, or None when it has no noun to hang them on."""
    merged = merge_nouns(tokens)
    classes = [delimiter_of(token.text.lower()) for token in merged]
    concepts = concept_indices(merged, classes)
    if not concepts:
        return None
    columns = column_ordinals(concepts, classes)
    positions = []
    for index, (token, column) in enumerate(zip(merged, columns, strict=True)):
        home = concepts[column]
        feature = None if index == home else token.text.lower()
        positions.append(Position(Neuron(merged[home].lemma.lower(), feature), column))
    return positions


def is_noun(token: Token) -> bool:
    return token.pos in NOUN_TAGS


def merge_nouns(tokens: Sequence[Token]) -> list[Token]:
    """Step 3: each run of nouns becomes one token; a dash between two nouns does not break it.

    Taggers take a dash for a noun at times; such a dash is merged like any other noun.
    """
    merged: list[Token] = []
    in_run = False  # is the token just before this one a noun?
    join = "_"
    for index, token in enumerate(tokens):
        if in_run and is_noun(token):
            merged[-1] = join_tokens(merged[-1], join, token)
            join = "_"
        elif in_run and is_dash_before_noun(tokens, index):
            join = "-"  # the dash itself vanishes into the join
        else:
            merged.append(token)
            in_run = is_noun(token)
    return merged


def is_dash_before_noun(tokens: Sequence[Token], index: int) -> bool:
    next_index = index + 1
    is_dash = tokens[index].text in DASHES
    return is_dash and next_index < len(tokens) and is_noun(tokens[next_index])


def join_tokens(left: Token, join: str, right: Token) -> Token:
    return Token(left.text + join + right.text, left.lemma + join + right.lemma, left.pos)


def concept_indices(tokens: Sequence[Token], classes: Sequence[Delimiter]) -> list[int]:
    """Step 5: where the nouns stand that lead a column.

    With no delimiter before the next noun, a noun only describes that next one ("human ...
    nature") and is an ordinary feature of its column. All pairs are judged on the nouns as tagged.
    """
    nouns = [index for index, token in enumerate(tokens) if is_noun(token)]
    concepts = []
    for left, right in pairwise(nouns):
        if any(kind is not Delimiter.NONE for kind in classes[left + 1 : right]):
            concepts.append(left)
    # The last noun has no next one to describe, so it always leads a column.
    return concepts + nouns[-1:]


def column_ordinals(concepts: Sequence[int], classes: Sequence[Delimiter]) -> list[int]:
    """Step 6: the column every token belongs to."""
    starts = set(column_starts(concepts, classes))
    ordinals = []
    column = 0
    for index in range(len(classes)):
        if index in starts:
            column += 1
        ordinals.append(column)
    return ordinals


def column_starts(concepts: Sequence[int], classes: Sequence[Delimiter]) -> Iterator[int]:
    """The first token of every column but the first: it follows the delimiter that ends a column.

    There is always one: a noun without a delimiter behind it did not stay a concept.
    """
    for left, right in pairwise(concepts):
        between = range(left + 1, right)
        firm = [index for index in between if classes[index] is Delimiter.DETERMINISTIC]
        soft = [index for index in between if classes[index] is Delimiter.PROBABILISTIC]
        yield (firm or soft)[-1] + 1
