"""The operations of a gateway, as its OpenAPI document lists them: what each takes and returns."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from giaann_p2p.gateway import event_views, views
from giaann_p2p.gateway import openai_replies as replies
from giaann_p2p.gateway import openai_requests as requests
from giaann_p2p.gateway.backend import Facts
from giaann_p2p.gateway.ours_requests import (
    FOUND,
    LEADS,
    MOST_NOUN,
    WORDS,
    Number,
    PromptRequest,
    TextToLearn,
)


class Operation(NamedTuple):
    """One operation: a method of a path."""

    method: str
    path: str
    summary: str
    takes: Any = None
    """The type of its body; None if it has none."""
    gives: Any = None
    """The type of the JSON that it returns; None if it returns something else."""
    media: str = "application/json"
    events: Mapping[str, Any] = MappingProxyType({})
    """The types of the events that it streams, by their names."""
    chunk: Any = None
    """The type of the chunks that it streams without a name, as OpenAI does; None if none."""
    path_schema: Mapping[str, Any] = MappingProxyType({"type": "string"})
    """The schema of the parameters in its path."""
    query: Mapping[str, Any] = MappingProxyType({})
    """The parameters of its query, with their schemas."""
    request: Any = None
    """An example of its body."""
    uploads: Mapping[str, Any] = MappingProxyType({})
    """The other types of its body, with their schemas."""
    reply: Any = None
    """An example of its JSON."""
    failures: tuple[int, ...] = ()
    """The status codes of failures, besides those of every operation."""


EVENT_STREAM = "text/event-stream"
_TEXT = "text/plain"
_MODEL = {"id": "bees", "object": "model", "created": 1764000000, "owned_by": "giaann"}
_USAGE = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
_FILE = {
    "type": "object",
    "required": ["file"],
    "properties": {"file": {"type": "string", "format": "binary"}},
}
_NOUN = {"type": "string", "minLength": 1, "maxLength": MOST_NOUN}
_STREAM = "With `stream`, chunks as server-sent events, and [DONE] at the end."


def _numbers(*numbers: Number) -> dict[str, Any]:
    """Return numbers of a query with their schemas."""
    return {
        one.name: {"type": "integer", "minimum": 1, "maximum": one.most, "default": one.usual}
        for one in numbers
    }


OPERATIONS = (
    Operation("get", "/healthz", "Whether the process runs.", media=_TEXT),
    Operation("get", "/readyz", "Whether prompts can be answered now.", media=_TEXT),
    Operation("get", "/metrics", "Metrics of this process, for Prometheus.", media=_TEXT),
    Operation("get", "/openapi.json", "This document.", gives=dict[str, Any]),
    Operation(
        "get",
        "/v1/models",
        "All models: the one that is served.",
        gives=replies.Models,
        reply={"object": "list", "data": [_MODEL]},
    ),
    Operation(
        "get",
        "/v1/models/{model}",
        "One model.",
        gives=replies.Model,
        reply=_MODEL,
        failures=(404,),
    ),
    Operation(
        "post",
        "/v1/completions",
        f"Continues prompts. {_STREAM}",
        takes=requests.CompletionRequest,
        gives=replies.Completion,
        chunk=replies.Completion,
        request={"model": "bees", "prompt": "Bees make honey from", "max_tokens": 2},
        reply={
            "id": "cmpl-1",
            "object": "text_completion",
            "created": 1764000000,
            "model": "bees",
            "choices": [
                {"text": " the nectar", "index": 0, "logprobs": None, "finish_reason": "length"}
            ],
            "usage": _USAGE,
        },
        failures=(404, 429),
    ),
    Operation(
        "post",
        "/v1/chat/completions",
        f"Continues the last message of the user. {_STREAM}",
        takes=requests.ChatRequest,
        gives=replies.Chat,
        chunk=replies.ChatPart,
        request={
            "model": "bees",
            "messages": [{"role": "user", "content": "Bees make honey from"}],
            "max_tokens": 2,
        },
        reply={
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1764000000,
            "model": "bees",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": " the nectar", "refusal": None},
                    "logprobs": None,
                    "finish_reason": "length",
                }
            ],
            "usage": _USAGE,
        },
        failures=(404, 429),
    ),
    Operation("get", "/api/info", "A description of the swarm or the brain.", gives=Facts),
    Operation(
        "get",
        "/api/status",
        "The state, as `giaann status --json` prints it, with what to do about it.",
        gives=dict[str, Any],
    ),
    Operation("get", "/api/peers", "The peers, and who holds each shard.", gives=views.PeersNow),
    Operation(
        "get",
        "/api/columns/{noun}",
        "A noun's column.",
        gives=views.ShownColumn,
        query=_numbers(WORDS, LEADS),
        path_schema=_NOUN,
        failures=(404,),
    ),
    Operation(
        "get",
        "/api/search",
        "Nouns that begin with `q`, the most frequent first.",
        gives=views.Found,
        query={"q": {"type": "string"}, **_numbers(FOUND)},
        reply={"found": [{"noun": "bee", "occurrences": 12}], "of": 1, "note": ""},
    ),
    Operation(
        "get",
        "/api/jobs",
        "The texts that were learned, as far as they are known.",
        gives=views.Jobs,
    ),
    Operation(
        "post",
        "/api/prompt",
        "Continues a prompt: events `begun`, `token` with the evidence for it, `done`, `error`.",
        takes=PromptRequest,
        media=EVENT_STREAM,
        events=event_views.PROMPT,
        request={"prompt": "Bees make honey from", "max_tokens": 2},
        failures=(429,),
    ),
    Operation(
        "post",
        "/api/train",
        "Learns a text in UTF-8, with its name in ?name=: the events `progress`, `done`, `error`.",
        takes=TextToLearn,
        media=EVENT_STREAM,
        events=event_views.TRAIN,
        query={"name": {"type": "string"}},
        uploads={"multipart/form-data": _FILE, _TEXT: {"type": "string"}},
        request={"name": "bees.txt", "text": "Bees make honey from the nectar of flowers."},
        failures=(429,),
    ),
    Operation(
        "get",
        "/api/events",
        "The events `status`, `peers`, `jobs` and `rates`, at once and when they change.",
        media=EVENT_STREAM,
        events=event_views.LISTEN,
    ),
)
"""All operations but the page's files."""
