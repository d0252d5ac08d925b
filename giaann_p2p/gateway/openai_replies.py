"""The replies of OpenAI's interface, as its clients read them."""

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

Finish = Literal["stop", "length"]
"""Why an answer ended: `stop` at its end or at a stop text, `length` at its maximum of tokens."""


class Model(msgspec.Struct, kw_only=True):
    """A model that is served."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "giaann"


class Models(msgspec.Struct, kw_only=True):
    """All models that are served: one."""

    object: Literal["list"] = "list"
    data: list[Model]


class Usage(msgspec.Struct, kw_only=True):
    """How many tokens a request took."""

    prompt_tokens: int
    """Tokens of the prompt; for a model of words, its words and punctuation marks."""
    completion_tokens: int
    total_tokens: int


class Logprobs(msgspec.Struct, kw_only=True):
    """The logarithms of the probabilities of a completion's tokens."""

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None]
    text_offset: list[int]


class CompletionChoice(msgspec.Struct, kw_only=True):
    """One answer to a prompt, or a part of it in a stream."""

    text: str
    index: int
    logprobs: Logprobs | None = None
    finish_reason: Finish | None = None


class Completion(msgspec.Struct, kw_only=True):
    """The reply to `POST /v1/completions`, and each chunk of it in a stream."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: Usage | UnsetType | None = UNSET


class TokenLogprob(msgspec.Struct, kw_only=True):
    """The logarithm of the probability of a chat's token."""

    token: str
    logprob: float
    bytes: list[int]
    top_logprobs: list["TokenLogprob"] = []


class ChatLogprobs(msgspec.Struct, kw_only=True):
    """The logarithms of the probabilities of a chat's tokens."""

    content: list[TokenLogprob]
    refusal: None = None


class Said(msgspec.Struct, kw_only=True):
    """The message that a chat is answered with."""

    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None


class ChatChoice(msgspec.Struct, kw_only=True):
    """One answer to a chat."""

    index: int
    message: Said
    logprobs: ChatLogprobs | None = None
    finish_reason: Finish


class Chat(msgspec.Struct, kw_only=True):
    """The reply to `POST /v1/chat/completions`."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    usage: Usage


class SaidPart(msgspec.Struct, kw_only=True):
    """A part of the message that a chat is answered with."""

    role: Literal["assistant"] | UnsetType = UNSET
    content: str | UnsetType = UNSET


class ChatPartChoice(msgspec.Struct, kw_only=True):
    """A part of one answer to a chat."""

    index: int
    delta: SaidPart
    logprobs: ChatLogprobs | None = None
    finish_reason: Finish | None = None


class ChatPart(msgspec.Struct, kw_only=True):
    """A chunk of a streamed answer to a chat."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: list[ChatPartChoice]
    usage: Usage | UnsetType | None = UNSET
