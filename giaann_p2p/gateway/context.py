"""The objects that the handlers of a gateway share."""

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
    """Set when the gateway shuts down, to end streams that would never end by themselves."""

    @property
    def facts(self) -> Facts:
        """The description of the swarm or the brain."""
        return self.backend.facts


def context_of(backend: Backend, limits: Limits, count: Callable[[str], int]) -> Context:
    """Return the context of a new gateway."""
    metrics = Metrics()
    prompts = Prompts(backend, limits, metrics)
    return Context(backend, limits, metrics, prompts, count, asyncio.Event())
