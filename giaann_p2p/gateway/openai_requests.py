"""The requests of OpenAI's interface: which fields are read, and how errors name a wrong one.

Fields that are not listed are ignored, because programs send many that have no meaning here. A
field that is listed is either obeyed or refused by name; none is silently left out.
"""

import secrets
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from giaann_p2p.errors import PromptError
from giaann_p2p.gateway.failures import BadField, NoModel
from giaann_p2p.model.manner import Manner, Sampling
from giaann_p2p.model.prompt import checked_prompt
from giaann_p2p.model.traits import traits_of
from giaann_p2p.plain_faults import fault_of

USUAL_TOKENS = 80
"""Maximum tokens of an answer whose request does not give a number."""
_SEEDS = 1 << 62
_Struct = TypeVar("_Struct", bound=msgspec.Struct)
_Stop = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
_Stops = Annotated[list[_Stop], msgspec.Meta(max_length=16)]


class StreamOptions(msgspec.Struct, kw_only=True):
    """Options of a streamed answer."""

    include_usage: bool = False
    """Whether the last chunk has the numbers of tokens."""


class _Options(msgspec.Struct, kw_only=True):
    """The fields about answers that both kinds of requests have."""

    model: str
    temperature: Annotated[float, msgspec.Meta(ge=0, le=100)] | None = None
    """The sampling temperature; none means greedy. A model of words is always greedy."""
    top_p: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    top_k: Annotated[int, msgspec.Meta(ge=0, le=1 << 20)] | None = None
    """Draw from only this many of the best tokens; an extension that many servers have."""
    repetition_penalty: Annotated[float, msgspec.Meta(ge=1, le=100)] | None = None
    """Divide the odds of recent tokens by this; an extension that many servers have."""
    seed: Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)] | None = None
    stop: str | _Stops | None = None
    n: Annotated[int, msgspec.Meta(ge=1, le=128)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None

    @property
    def count(self) -> int:
        """The number of answers to each prompt."""
        return self.n or 1

    @property
    def rivals(self) -> int:
        """How many of the best candidates are returned for each token."""
        return 0

    @property
    def stops(self) -> tuple[str, ...]:
        """The texts at which an answer ends."""
        found = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return tuple(text for text in found if text)

    @property
    def with_usage(self) -> bool:
        """Whether a stream ends with the numbers of tokens."""
        return self.stream_options is not None and self.stream_options.include_usage


class CompletionRequest(_Options, kw_only=True):
    """The body of `POST /v1/completions`."""

    prompt: str | list[str]
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    echo: bool | None = None
    """Whether each answer begins with its prompt."""
    logprobs: Annotated[int, msgspec.Meta(ge=0, le=20)] | None = None
    """Return the logarithms of the probabilities of each token and of this many of the best
    candidates; for models of subwords."""

    @property
    def rivals(self) -> int:
        """How many of the best candidates are returned for each token."""
        return self.logprobs or 0

    @property
    def prompts(self) -> list[str]:
        """The prompts to continue; PromptError if one is empty."""
        found = [self.prompt] if isinstance(self.prompt, str) else self.prompt
        if not found:
            raise PromptError("the prompt is empty: give some words to continue")
        return [checked_prompt(one) for one in found]


class Part(msgspec.Struct, kw_only=True):
    """A part of a message; only parts of text can be read."""

    type: Literal["text"]
    text: str


class ChatMessage(msgspec.Struct, kw_only=True):
    """A message of a chat."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Part] | None = None

    @property
    def text(self) -> str:
        """The text of the message."""
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""


class ChatRequest(_Options, kw_only=True):
    """The body of `POST /v1/chat/completions`."""

    messages: Annotated[list[ChatMessage], msgspec.Meta(min_length=1, max_length=1024)]
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    max_completion_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, msgspec.Meta(ge=0, le=20)] | None = None

    @property
    def rivals(self) -> int:
        """How many of the best candidates are returned for each token."""
        return self.top_logprobs or 0

    @property
    def tokens(self) -> tuple[str, int | None]:
        """The field that bounds the tokens of an answer, and its value."""
        if self.max_completion_tokens is None:
            return "max_tokens", self.max_tokens
        return "max_completion_tokens", self.max_completion_tokens

    @property
    def prompt(self) -> str:
        """The last message of the user, which is continued."""
        texts = [one.text for one in self.messages if one.role == "user"]
        if not texts:
            raise BadField("messages: there is none of the role user", "messages")
        return checked_prompt(texts[-1])

    @property
    def ignored(self) -> str:
        """The parts of the chat without effect on the answer, in words; empty if there are none."""
        roles = [one.role for one in self.messages]
        told = ["system message"] if {"system", "developer"} & set(roles) else []
        last = len(roles) - 1 - roles[::-1].index("user") if "user" in roles else 0
        if any(role not in ("system", "developer") for role in roles[:last] + roles[last + 1 :]):
            told.append("all but the last user message")
        return ", ".join(told)


def decoded(body: bytes, kind: type[_Struct]) -> _Struct:
    """Return the request in a body; BadField names the field that is wrong."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        fault = fault_of(error)
        told = f"{fault.place}: {fault.words}" if fault.place else f"the body: {fault.words}"
        raise BadField(told, fault.place or None) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadField(f"the body cannot be read: {fault_of(error)}", None) from None


def check_model(name: str, model: str) -> None:
    """Raise NoModel unless a request names the model that is served."""
    if name != model:
        raise NoModel(f"the model {name!r} does not exist; this gateway has {model!r}")


def manners(
    options: _Options, profile: str, tokens: int | None, most: int, field: str = "max_tokens"
) -> list[Manner]:
    """Return the settings of each answer to a prompt; BadField if one cannot be obeyed.

    `field`: the name of the field that gives `tokens`.
    """
    tokens = min(USUAL_TOKENS, most) if tokens is None else tokens
    if tokens > most:
        raise BadField(f"{field}: at most {most:,} here; it is {tokens:,}", field)
    if not traits_of(profile).draws:
        _refuse_drawing(options)
        return [Manner(max_tokens=tokens)] * options.count
    first = secrets.randbelow(_SEEDS) if options.seed is None else options.seed % (1 << 63)
    return [
        Manner(max_tokens=tokens, sampling=_sampling(options, (first + number) % (1 << 63)))
        for number in range(options.count)
    ]


def _sampling(options: _Options, seed: int) -> Sampling:
    greedy = not options.temperature
    return Sampling(
        temperature=options.temperature or 0.0,
        top_p=1.0 if options.top_p is None else options.top_p,
        top_k=options.top_k or 0,
        seed=0 if greedy else seed,
        repetition_penalty=options.repetition_penalty or 1.0,
        rivals=options.rivals,
    )


_GREEDY: Sequence[tuple[str, tuple[Any, ...]]] = (
    ("temperature", (None, 0)),
    ("top_p", (None, 1)),
    ("top_k", (None, 0)),
    ("repetition_penalty", (None, 1)),
)


def _refuse_drawing(options: _Options) -> None:
    for name, usual in _GREEDY:
        value = getattr(options, name)
        if value not in usual:
            raise BadField(
                f"{name}: a model of words always chooses the best token; leave {name} out,"
                f" or give {usual[1]}; it is {value}",
                name,
            )


def require_probabilities(profile: str, field: str, wanted: bool) -> None:
    """Raise BadField if logarithms of probabilities are requested from a model of words."""
    if wanted and not traits_of(profile).draws:
        raise BadField(f"{field}: a model of words gives no probabilities; leave it out", field)
