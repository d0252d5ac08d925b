"""What the handlers of a gateway share."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from giaann_p2p.gateway.backend import Backend, Facts
from giaann_p2p.gateway.limits import Limits
from giaann_p2p.gateway.metrics import Metrics
from giaann_p2p.gateway.prompts import Prompts


class Context(NamedTuple):
    """A backend with the bounds and the counters of its gateway."""

    backend: Backend
    limits: Limits
    metrics: Metrics
    prompts: Prompts
    count: Callable[[str], int]
    """Counts the tokens of a prompt."""
    draining: asyncio.Event
    """Set when the gateway is about to end; then streams without an end are ended."""

    @property
    def facts(self) -> Facts:
        """What is served."""
        return self.backend.facts


def context_of(backend: Backend, limits: Limits, count: Callable[[str], int]) -> Context:
    """Return the context of a gateway that begins."""
    metrics = Metrics()
    prompts = Prompts(backend, limits, metrics)
    return Context(backend, limits, metrics, prompts, count, asyncio.Event())
