"""Reads and checks the requests of `/api`."""

from typing import Annotated, NamedTuple

import msgspec
from starlette.requests import Request

from giaann_p2p.gateway.context import Context
from giaann_p2p.gateway.failures import BadField
from giaann_p2p.model.manner import Beam, Manner, Sampling, Variant
from giaann_p2p.model.traits import traits_of

_RIVALS = 8
"""The number of candidates that are returned for each token."""
MOST_NOUN = 256
"""Maximum number of characters of a noun."""


class Number(NamedTuple):
    """A number in a request's query: 1 to `most`."""

    name: str
    usual: int
    most: int

    def of(self, request: Request) -> int:
        """Return the number in a request, or else the default; BadField if it is invalid."""
        given = request.query_params.get(self.name, "")
        if not given:
            return self.usual
        if not (given.isascii() and given.isdecimal() and 1 <= int(given[:9]) <= self.most):
            raise BadField(f"{self.name} must be 1 to {self.most}; it is {given[:20]!r}", self.name)
        return int(given[:9])


WORDS, LEADS, FOUND = Number("words", 16, 256), Number("leads", 4, 64), Number("most", 20, 200)


class PromptRequest(msgspec.Struct, kw_only=True):
    """The body of `POST /api/prompt`: a prompt, with the options of `giaann prompt`."""

    prompt: str
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    repetition_penalty: float | None = None
    stop: str | list[str] | None = None
    timing: str | None = None
    beam: Beam | None = None
    graded_strengths: bool = False
    graded_activations: bool = False
    explain: bool = False
    """Whether to return the rivals of each token, if the model knows them."""

    def manner(self, context: Context) -> Manner:
        """Return the settings for the answer; UsageError if they are invalid."""
        most, tokens = context.limits.tokens, self.max_tokens or 80
        if tokens > most:
            raise BadField(f"max_tokens must be at most {most:,}; it is {tokens:,}", "max_tokens")
        stop = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return Manner(
            max_tokens=tokens,
            timing=self.timing or "auto",
            beam=self.beam,
            variant=Variant(
                graded_strengths=self.graded_strengths, graded_activations=self.graded_activations
            ),
            sampling=Sampling(
                temperature=self.temperature or 0.0,
                top_k=self.top_k or 0,
                top_p=1.0 if self.top_p is None else self.top_p,
                seed=self.seed or 0,
                repetition_penalty=1.0
                if self.repetition_penalty is None
                else self.repetition_penalty,
                stop=tuple(text for text in stop if text),
                rivals=_RIVALS if self.explain and traits_of(context.facts.profile).draws else 0,
            ),
        )


class TextToLearn(msgspec.Struct, kw_only=True):
    """The body of `POST /api/train`, as JSON."""

    name: Annotated[str, msgspec.Meta(max_length=256)] = "text"
    text: str
