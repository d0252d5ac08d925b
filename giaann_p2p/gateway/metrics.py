"""The counters of a gateway, and its page for Prometheus."""

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST as CONTENT_TYPE

__all__ = ["CONTENT_TYPE", "Metrics"]


class Metrics:
    """The counters of one gateway."""

    def __init__(self) -> None:
        self.prompts_now = 0
        """Prompts that are being answered."""
        self.prompts = self.tokens = 0
        """Prompts begun, and tokens of answers, since the start."""
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        self._requests = Counter(
            "giaann_gateway_requests", "Requests.", ["route", "status"], registry=registry
        )
        self._seconds = Histogram(
            "giaann_gateway_request_seconds", "Duration of requests.", ["route"], registry=registry
        )
        self._tokens = Counter("giaann_gateway_tokens", "Tokens of answers.", registry=registry)
        self._prompts = Counter("giaann_gateway_prompts", "Prompts begun.", registry=registry)
        now = Gauge("giaann_gateway_prompts_now", "Prompts being answered.", registry=registry)
        now.set_function(lambda: self.prompts_now)
        self.listeners = Gauge(
            "giaann_gateway_listeners", "Listeners to events.", registry=registry
        )

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count a request that has ended."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    @contextmanager
    def prompt(self) -> Iterator[None]:
        """Count a prompt that is answered during the block."""
        self.prompts_now += 1
        self.prompts += 1
        self._prompts.inc()
        try:
            yield
        finally:
            self.prompts_now -= 1

    def came(self, tokens: int) -> None:
        """Count tokens of an answer."""
        self.tokens += tokens
        self._tokens.inc(tokens)

    def page(self) -> bytes:
        """Return the metrics in Prometheus's text format."""
        return generate_latest(self._registry)
