"""The application: its routes, and the guard before them."""

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from giaann_p2p.gateway import ours
from giaann_p2p.gateway.assets import Asset, page
from giaann_p2p.gateway.chat import chat
from giaann_p2p.gateway.completions import complete
from giaann_p2p.gateway.context import Context
from giaann_p2p.gateway.events import Feed, events
from giaann_p2p.gateway.failures import Failure, Unavailable, failure_of, response
from giaann_p2p.gateway.guard import EVENTS, TRAIN, Guard
from giaann_p2p.gateway.metrics import CONTENT_TYPE
from giaann_p2p.gateway.models import Models
from giaann_p2p.gateway.openapi import document
from giaann_p2p.gateway.rules import Access
from giaann_p2p.gateway.training import train

_LOG = logging.getLogger("giaann.http")
Handler = Callable[[Context, Request], Awaitable[Response]]


class Gateway(NamedTuple):
    """A gateway as an ASGI application, with the parts that its server uses."""

    guard: Guard
    context: Context
    feed: Feed
    app: Starlette

    def drain(self) -> None:
        """End the streams that would never end by themselves, because the gateway shuts down."""
        self.context.draining.set()


def gateway(context: Context, access: Access) -> Gateway:
    """Return the application of a gateway."""
    feed = Feed(context.backend, context.metrics, context.draining)
    routes = [*_routes(context, feed), *(_asset(*one) for one in page().items())]

    @asynccontextmanager
    async def life(_app: Starlette) -> AsyncIterator[None]:
        yield
        await feed.end()

    app = Starlette(
        routes=routes,
        lifespan=life,
        exception_handlers={404: _no_page, 405: _wrong_method},
    )
    note = partial(_note, context, routes)
    guard = Guard(app, access, context.limits, note, teaches=context.facts.training)
    return Gateway(guard, context, feed, app)


def _routes(context: Context, feed: Feed) -> list[Route]:
    models = Models(int(time.time()))
    handlers: list[tuple[str, str, Handler]] = [
        ("GET", "/healthz", _healthy),
        ("GET", "/readyz", _ready),
        ("GET", "/metrics", _metrics),
        ("GET", "/openapi.json", _openapi),
        ("GET", "/v1/models", models.all),
        ("GET", "/v1/models/{model:path}", models.one),
        ("POST", "/v1/completions", complete),
        ("POST", "/v1/chat/completions", chat),
        ("GET", "/api/info", ours.info),
        ("GET", "/api/status", ours.status),
        ("GET", "/api/peers", ours.peers),
        ("GET", "/api/columns/{noun:path}", ours.column),
        ("GET", "/api/search", ours.search),
        ("GET", "/api/jobs", ours.jobs),
        ("POST", "/api/prompt", ours.prompt),
        ("POST", TRAIN, train),
        ("GET", EVENTS, events(feed)),
    ]
    return [
        Route(path, partial(_call, handle, context), methods=[m]) for m, path, handle in handlers
    ]


async def _call(handle: Handler, context: Context, request: Request) -> Response:
    try:
        return await handle(context, request)
    except Exception as error:  # noqa: BLE001  (reported to the client and the log)
        failure = failure_of(error)
        if failure.status == 500:
            _LOG.exception("%s %s failed", request.method, request.url.path)
        return response(failure)


def _asset(path: str, asset: Asset) -> Route:
    async def serve(request: Request) -> Response:
        return asset.response(request)

    return Route(path, serve, methods=["GET"])


async def _healthy(context: Context, request: Request) -> Response:
    return Response("ok\n", media_type="text/plain")


async def _ready(context: Context, request: Request) -> Response:
    if context.draining.is_set():
        raise Unavailable("this gateway is shutting down")
    if lacking := context.backend.lacking:
        raise Unavailable(lacking)
    return Response("ready\n", media_type="text/plain")


async def _metrics(context: Context, request: Request) -> Response:
    return Response(context.metrics.page(), media_type=CONTENT_TYPE)


async def _openapi(context: Context, request: Request) -> Response:
    return Response(document(), media_type="application/json")


async def _no_page(request: Request, _error: Exception) -> Response:
    return response(Failure(404, f"there is no {request.url.path[:200]} here", "not_found"))


async def _wrong_method(request: Request, _error: Exception) -> Response:
    text = f"{request.url.path[:200]} does not accept {request.method[:20]}"
    return response(Failure(405, text, "method_not_allowed"))


def _note(context: Context, routes: list[Route], path: str, status: int, seconds: float) -> None:
    """Count a request under its route, because the number of paths is unlimited."""
    scope = {"type": "http", "path": path, "method": "GET", "headers": []}
    found = (route.path for route in routes if route.matches(scope)[0] is not Match.NONE)
    context.metrics.request(next(found, "other"), status, seconds)
