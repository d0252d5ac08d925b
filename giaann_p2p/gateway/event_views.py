"""The JSON of the events of `/api`, as types for the OpenAPI document.

The events are written elsewhere, field by field, because many are sent per second. A test reads
them back by these types.
"""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from giaann_p2p.gateway.backend import Progress
from giaann_p2p.gateway.views import Jobs, PeersNow
from giaann_p2p.model.said import Stopped


class TokenCost(msgspec.Struct, kw_only=True):
    """The cost of a token at the peer that computed it."""

    ms: float
    waited_ms: float
    rows: int
    at_hand: int
    """Rows that need not be read, because the peer had them."""
    round_trips: int
    bytes: int


class TokenRival(msgspec.Struct, kw_only=True):
    """A candidate for a token."""

    text: str
    probability: float


class AnswerBegun(msgspec.Struct, kw_only=True):
    """The beginning of an answer, sent with its first token."""

    completion: str
    """The end of a word that the prompt had only begun."""
    unknown: list[str]
    """Words of the prompt that the model never learned."""
    cost: TokenCost | None
    """The cost of reading the prompt; None if that is not known."""
    lost: str | UnsetType = UNSET
    """What the swarm has lost; absent if it has lost nothing."""


class AnswerToken(msgspec.Struct, kw_only=True):
    """A token, with the evidence for it."""

    text: str
    word: str
    concept: str
    feature: str | None
    timing: str
    tier: str
    """The evidence for the token. From a model of subwords: `recall`, `own rows`, `any column` or
    `no evidence`; from a model of words: a timing, or one of the last three."""
    score: float
    candidates: int
    cost: TokenCost
    probability: float | UnsetType = UNSET
    """The token's share of the odds of all candidates; for a model of words, of the times that they
    followed the previous word. Absent if the peer has an earlier release."""
    rivals: list[TokenRival] | UnsetType = UNSET
    """Other candidates; only from a model of subwords, if the request has `explain`."""


class AnswerDone(msgspec.Struct, kw_only=True):
    """The end of an answer, with all of it."""

    stopped: Stopped
    text: str


class EventError(msgspec.Struct, kw_only=True):
    """Why a stream ends early."""

    message: str
    code: str


class SecondRates(msgspec.Struct, kw_only=True):
    """How much was done in the last second."""

    t: float
    """The time, in seconds since 1970."""
    reads: float
    writes: float
    tokens: float
    prompts: float


PROMPT = {"begun": AnswerBegun, "token": AnswerToken, "done": AnswerDone, "error": EventError}
TRAIN = {"progress": Progress, "done": dict[str, Any], "error": EventError}
LISTEN = {"status": dict[str, Any], "peers": PeersNow, "jobs": Jobs, "rates": SecondRates}
