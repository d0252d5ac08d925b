"""Prometheus metrics, read at each request from the counters that a node has anyway."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from giaann_p2p.net.hive.daemon_limits import Figures
from giaann_p2p.node.counters import BOUNDS, Histogram, RequestCounters
from giaann_p2p.node.members.lookout import Lookout
from giaann_p2p.node.members.member import Member
from peers.http import Page


class Watched(Protocol):
    """The p2pd process whose metrics are shown; `Host` implements it."""

    @property
    def deaths(self) -> int:
        """Number of times that p2pd has ended."""
        ...

    @property
    def disconnected(self) -> int:
        """Number of strangers disconnected because p2pd took too many resources."""
        ...

    @property
    def figures(self) -> Figures | None:
        """Memory, descriptors and processor time that p2pd takes now; None if unknown."""
        ...


class Metrics(Collector):
    """A page with the metrics of the node, its process and its p2pd, as of the request."""

    def __init__(self, read: Callable[[], Iterable[Metric]], host: Watched | None = None) -> None:
        """Create a page; `read` returns the node's metrics, and `host` has the p2pd, if any."""
        self._read, self._host = read, host
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """Return all metrics with their present values."""
        yield from self._read()
        if self._host is not None:
            yield from p2pd_metrics(self._host)
        yield GaugeMetricFamily("giaann_tasks", "Tasks in the event loop.", value=_tasks())

    def page(self) -> Page:
        """Return the page of metrics in Prometheus's text format."""
        return Page(200, generate_latest(self._registry), CONTENT_TYPE_LATEST)


def p2pd_metrics(host: Watched) -> Iterator[Metric]:
    """Return metrics of a peer's p2pd process: its resources, and the work of its watchdog."""
    yield from counters(
        giaann_p2pd_restarts=(
            "Times that p2pd has ended and was restarted.",
            host.deaths,
        ),
        giaann_p2pd_strangers_disconnected=(
            "Strangers disconnected because p2pd exceeded its limits.",
            host.disconnected,
        ),
    )
    figures = host.figures
    if figures is None:
        return
    yield from gauges(
        giaann_p2pd_resident_memory_bytes=("Memory that p2pd takes.", figures.memory),
        giaann_p2pd_open_fds=(
            "Files and connections that p2pd has open.",
            figures.descriptors,
        ),
        giaann_p2pd_cpu_seconds=("Processor time of this run of p2pd.", figures.seconds),
    )


def directory_metrics(lookout: Lookout) -> Iterator[Metric]:
    """Return metrics of the peer directory, for every role."""
    directory = lookout.view.directory
    text, refused = "Peer records refused as forged or wrong.", directory.refused
    yield from gauges(giaann_directory_records=("Peer records in the directory.", len(directory)))
    yield from counters(giaann_records_refused=(text, refused))


def request_metrics(said: RequestCounters, member: Member) -> Iterator[Metric]:
    """Return metrics of other peers' requests, for storage and compute peers."""
    return counters(
        giaann_refused=("Requests refused.", said.refused),
        giaann_unreadable=("Requests that could not be decoded.", said.unreadable),
        giaann_received_bytes=("Bytes of requests received.", said.bytes_in),
        giaann_sent_bytes=("Bytes of answers sent.", said.bytes_out),
        giaann_connections_lost=("Connections that broke.", member.lost),
    )


def gauges(**values: tuple[str, float]) -> Iterator[Metric]:
    """Return a gauge for each name, from its help text and its value."""
    for name, (text, value) in values.items():
        yield GaugeMetricFamily(name, text, value=float(value))


def counters(**values: tuple[str, float]) -> Iterator[Metric]:
    """Return a counter for each name, from its help text and its value."""
    for name, (text, value) in values.items():
        yield CounterMetricFamily(name, text, value=value)


def histogram(name: str, text: str, times: Histogram) -> Metric:
    """Return a histogram of durations, with its present counts, as a Prometheus metric."""
    buckets, total = [], 0
    for bound, count in zip([*map(str, BOUNDS), "+Inf"], times.counts, strict=True):
        total += count
        buckets.append((bound, float(total)))
    return HistogramMetricFamily(
        f"giaann_{name}_seconds", text, buckets=buckets, sum_value=times.seconds
    )


def _tasks() -> int:
    """Return the number of tasks in the event loop; 0 outside an event loop."""
    try:
        return len(asyncio.all_tasks())
    except RuntimeError:
        return 0
