"""Metrics as Prometheus reads them, from numbers that are there anyway."""

import asyncio
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from giaann_p2p.node.counters import BOUNDS, Histogram
from peers.http import Page


class Metrics(Collector):
    """A page of metrics, each read when somebody asks; and what the process takes."""

    def __init__(self, read: Callable[[], Iterable[Metric]]) -> None:
        self._read = read
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """Return all as they are now."""
        yield from self._read()
        yield GaugeMetricFamily("giaann_tasks", "Tasks of the event loop.", value=_tasks())

    def page(self) -> Page:
        """Return what Prometheus reads."""
        return Page(200, generate_latest(self._registry), CONTENT_TYPE_LATEST)


def histogram(name: str, text: str, times: Histogram) -> Metric:
    """Return a histogram as it is now."""
    buckets, total = [], 0
    for bound, count in zip([*map(str, BOUNDS), "+Inf"], times.counts, strict=True):
        total += count
        buckets.append((bound, float(total)))
    return HistogramMetricFamily(
        f"giaann_{name}_seconds", text, buckets=buckets, sum_value=times.seconds
    )


def _tasks() -> int:
    """Return how many tasks there are; none where the page is not asked for within a loop."""
    try:
        return len(asyncio.all_tasks())
    except RuntimeError:
        return 0
