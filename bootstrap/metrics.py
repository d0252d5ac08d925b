"""What a bootstrap peer shows to Prometheus."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from bootstrap.node import BootstrapNode


def metrics_of(node: BootstrapNode) -> Iterator[Metric]:
    """Read what there is to be shown."""
    directory = node.lookout.others.around.directory
    yield CounterMetricFamily(
        "giaann_manifests",
        "How often the manifest was asked for.",
        value=node.gate.asked_for_manifest,
    )
    yield GaugeMetricFamily(
        "giaann_directory_records", "Records of peers that are known.", value=len(directory)
    )
    yield CounterMetricFamily(
        "giaann_records_refused", "Records that were forged or wrong.", value=directory.refused
    )
