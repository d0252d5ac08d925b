"""Turns results into HTTP responses."""

import logging
from collections.abc import Callable
from contextlib import aclosing

import msgspec
from starlette.responses import Response

from giaann_p2p.gateway.failures import Failure, failure_of
from giaann_p2p.gateway.sse import Events, EventStream, begun, event, unnamed

_LOG = logging.getLogger("giaann.http")


def as_json(value: object, headers: dict[str, str] | None = None) -> Response:
    """Return a response with a value as JSON."""
    return Response(msgspec.json.encode(value), 200, headers, "application/json")


async def stream_of(events: Events, headers: dict[str, str] | None = None) -> EventStream:
    """Return a stream of OpenAI's chunks; raise an error that comes before the first one."""
    told = _with_failure(await begun(events), lambda failure: unnamed(failure.body))
    return EventStream(told, headers)


async def events_of(events: Events) -> EventStream:
    """Return a stream of named events; raise an error that comes before the first one."""
    told = _with_failure(
        await begun(events),
        lambda failure: event("error", {"message": failure.message, "code": failure.code}),
    )
    return EventStream(told)


async def _with_failure(events: Events, tell: Callable[[Failure], bytes]) -> Events:
    """Yield events and, if they fail midway, the failure as the last one."""
    async with aclosing(events):
        try:
            async for one in events:
                yield one
        except Exception as error:  # noqa: BLE001  (reported to the client and the log)
            failure = failure_of(error)
            if failure.status == 500:
                _LOG.exception("a stream failed")
            yield tell(failure)
