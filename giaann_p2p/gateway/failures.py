"""What a client is told when a request fails: a status code, and OpenAI's JSON of an error.

The same JSON is used outside `/v1`. A client may send a request again after 429 and 503; the header
Retry-After says when. An exception that is not an error of this library is a fault of the gateway:
its text stays in the log.
"""

from typing import Any, NamedTuple

import msgspec
from starlette.responses import Response

from giaann_p2p.errors import GiaannError, NobodyComputes, PeerError, PromptError, UsageError

RETRY_AFTER = 2
"""Seconds after which a client may repeat a request that was refused temporarily."""


class Unavailable(GiaannError):  # noqa: N818  (what it is, not what went wrong)
    """The swarm cannot be reached now, or does not answer; the gateway keeps trying."""


class Busy(GiaannError):  # noqa: N818  (what it is, not what went wrong)
    """The gateway already has as much work as it accepts at once."""


class NotKnown(UsageError):  # noqa: N818  (what it is, not what went wrong)
    """There is no such model, noun or page."""

    code = "not_found"


class NoModel(NotKnown):
    """There is no such model."""

    code = "model_not_found"


class BadField(UsageError):  # noqa: N818  (what it is, not what went wrong)
    """A field of a request is wrong."""

    def __init__(self, message: str, field: str | None) -> None:
        super().__init__(message)
        self.field = field
        """The name of the field; None if it is the whole body."""


class BadMessage(PromptError):  # noqa: N818  (what it is, not what went wrong)
    """The message of a chat that is to be continued is at fault, as a prompt."""


class Failure(NamedTuple):
    """A failed request, as its client sees it."""

    status: int
    message: str
    code: str
    kind: str = "invalid_request_error"
    """What OpenAI calls the type of an error."""
    field: str | None = None
    """The field of the request that is wrong."""

    @property
    def body(self) -> dict[str, Any]:
        """The failure as plain values, for JSON."""
        told = {"message": self.message, "type": self.kind, "param": self.field, "code": self.code}
        return {"error": told}

    @property
    def headers(self) -> dict[str, str]:
        """The headers that belong to the failure."""
        again = self.status in (429, 503)
        return {"retry-after": str(RETRY_AFTER)} if again else {}


def failure_of(error: BaseException) -> Failure:
    """Return the failure that a client sees for an exception."""
    text = str(error)
    match error:
        case BadField():
            return Failure(400, text, "invalid_value", field=error.field)
        case NotKnown():
            return Failure(404, text, error.code)
        case BadMessage():
            return Failure(400, text, "prompt_refused", field="messages")
        case PromptError():
            return Failure(400, text, "prompt_refused", field="prompt")
        case UsageError():
            return Failure(400, text, "invalid_value", field=_field_in(text))
        case Busy():
            return Failure(429, text, "rate_limit_exceeded", "rate_limit_error")
        case NobodyComputes():
            return Failure(503, text, "no_compute_peer", "server_error")
        case Unavailable() | PeerError():
            return Failure(503, text, "swarm_unavailable", "server_error")
        case GiaannError():
            return Failure(500, text, "failed", "server_error")
    return Failure(500, "the gateway failed; its log says why", "internal_error", "server_error")


def response(failure: Failure) -> Response:
    """Return the HTTP response that reports a failure."""
    body = msgspec.json.encode(failure.body)
    return Response(body, failure.status, failure.headers, "application/json")


_FIELDS = frozenset(
    {"temperature", "top_k", "top_p", "seed", "repetition_penalty", "stop", "max_tokens", "timing"}
)


def _field_in(text: str) -> str | None:
    """Return the field with which a message begins; None if it does not begin with one."""
    first = text.split(maxsplit=1)[0] if text else ""
    return first if first in _FIELDS else None
