"""A bootstrap peer's metrics for Prometheus."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from bootstrap.node import BootstrapNode
from peers.metrics import counters, directory_metrics


def metrics_of(node: BootstrapNode) -> Iterator[Metric]:
    """Yield all metrics of a bootstrap peer."""
    asked = node.gate.asked_for_manifest
    yield from counters(giaann_manifests=("Requests for the manifest.", asked))
    yield from directory_metrics(node.lookout)
