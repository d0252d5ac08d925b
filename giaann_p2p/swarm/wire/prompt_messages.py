"""The messages by which clients have compute peers continue prompts."""

from collections.abc import Sequence
from operator import add
from typing import Annotated

import msgspec

from giaann_p2p.model.manner import MOST_TOKENS, Manner
from giaann_p2p.model.said import AnyToken, Stopped, Token
from giaann_p2p.model.subwords.said import SubwordToken
from giaann_p2p.swarm.wire.message import NEURON_BYTES, Amount, Message

MOST_PROMPT = 1 << 16
"""Maximum length of a prompt, in characters."""
MOST_TOLD = 1 << 10
"""Maximum number of tokens in one answer, because the length of a message is bounded."""
_MOST_UNKNOWN = 2 * MOST_PROMPT
"""Maximum number of unknown neurons in one answer: a prompt has fewer than two to a character."""
_NUMBER = 16
_TOLD = msgspec.Meta(max_length=MOST_TOLD)
_Unknown = Annotated[list[str], msgspec.Meta(max_length=_MOST_UNKNOWN)]


class Ask(Message, frozen=True, tag="ask"):
    """Request of a client to a compute peer: continue a prompt, and answer at each new token.

    The client repeats the question with a longer `said` to get the next tokens. The question holds
    all the state, so any compute peer can continue where another one stopped.
    """

    number: Annotated[bytes, msgspec.Meta(min_length=_NUMBER, max_length=_NUMBER)]
    """Random id of the prompt."""
    prompt: Annotated[str, msgspec.Meta(max_length=MOST_PROMPT)]
    manner: Manner
    said: Annotated[bytes, msgspec.Meta(max_length=NEURON_BYTES * MOST_TOKENS)]
    """The neurons of the tokens that the client has, in order: concept and feature, each as a
    little-endian u64."""


class Cost(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The cost of producing one token, or of processing the prompt before the first one."""

    micros: Amount = 0
    """Duration in microseconds: for a token, the time since the previous one."""
    waited: Amount = 0
    """Microseconds of `micros` that were spent waiting for rows."""
    rows: Amount = 0
    """Number of rows that were needed."""
    kept: Amount = 0
    """Number of the needed rows that were cached."""
    trips: Amount = 0
    """Number of times that the compute peer waited for other peers."""
    nbytes: Amount = 0
    """Bytes received in that time, including those of prefetched rows."""

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(*map(add, msgspec.structs.astuple(self), msgspec.structs.astuple(other)))


class Told(Message, frozen=True):
    """Answer to `Ask`: the tokens after `said`; there are none yet if the next one takes long.

    Its lists are bounded, because one byte of a message can stand for a whole `Cost`.
    """

    completion: str
    """The missing rest of the prompt's last word."""
    unknown: _Unknown
    """The neurons of the prompt that were never learned, as text."""
    tokens: Annotated[Sequence[AnyToken], _TOLD]
    stopped: Stopped | None
    """Why the answer is complete; None if it goes on."""
    costs: Annotated[list[Cost], _TOLD] = msgspec.field(default_factory=list)
    """Cost of each token, in order."""
    begun: Cost | None = None
    """The cost of processing the prompt; None while that is not done."""
    fault: str = ""
    """Reason why no compute peer can answer this prompt; empty if there is none."""


class Continued(Told, frozen=True, tag="told"):
    """The answer `Told` in a swarm of the profile `words`, or without tokens."""

    tokens: Annotated[list[Token], _TOLD]


class ContinuedSubwords(Told, frozen=True, tag="told subwords"):
    """The answer `Told` in a swarm of the profile `subwords`."""

    tokens: Annotated[list[SubwordToken], _TOLD]


def continued(
    completion: str,
    unknown: list[str],
    tokens: Sequence[AnyToken],
    stopped: Stopped | None,
    costs: list[Cost],
    begun: Cost | None,
    fault: str,
) -> Told:
    """Return the answer to `Ask` that can hold these tokens."""
    words = [token for token in tokens if isinstance(token, Token)]
    if len(words) == len(tokens):
        return Continued(completion, unknown, words, stopped, costs, begun, fault)
    subwords = [token for token in tokens if isinstance(token, SubwordToken)]
    return ContinuedSubwords(completion, unknown, subwords, stopped, costs, begun, fault)
