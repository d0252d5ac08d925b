"""The figures of one model after it learned one part of a text."""

from dataclasses import dataclass


@dataclass
class Figures:
    """What is measured; None where a model has no such figure."""

    model: str
    top1: float = 0.0
    """The share of right tokens; causal, unless the model is given columns."""
    given: float | None = None
    """The same with columns given."""
    strict: float | None = None
    top5: float | None = None
    bits_per_byte: float | None = None
    connections: int = 0
    """Connections, or distinct n-grams."""
    nbytes: int = 0
    """The memory of the store, or of the arrays of n-grams."""
    learn_seconds: float = 0.0
    """Processor time of all that was learned so far, without the parse."""
    test_seconds: float = 0.0
    """Processor time of the test."""
    positions: int = 0
    """The number of tokens that were predicted."""
    tiers: dict[str, tuple[int, int]] | None = None
    """What choices rest on: how many, and how many were right."""


@dataclass
class Point:
    """A point of the curve: the figures of all models after the same part of a text."""

    text: str
    documents: int
    tokens: int
    """The number of subword tokens in what was learned, after the crop to 160 a text."""
    figures: list[Figures]
