"""What a compute peer shows to Prometheus, read from its counters when it is asked."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from giaann_p2p.node.compute import ComputeNode
from peers.metrics import histogram


def metrics_of(node: ComputeNode) -> Iterator[Metric]:
    """Read what there is to be shown."""
    directory = node.lookout.others.around.directory
    gauges = {
        "giaann_ready": ("1 if it takes work.", node.ready),
        "giaann_chunks_in_work": ("Chunks that are learned or pushed.", node.worker.busy),
        "giaann_directory_records": ("Records of peers that are known.", len(directory)),
    }
    for name, (text, value) in gauges.items():
        yield GaugeMetricFamily(name, text, value=float(value))
    said = node.counters
    counters = {
        "giaann_orders": ("Chunks that were taken.", said.orders),
        "giaann_chunks_learned": ("Chunks that were learned.", said.chunks),
        "giaann_chunks_failed": ("Chunks that could not be learned.", said.failed),
        "giaann_sentences": ("Sentences in chunks that were learned.", said.sentences),
        "giaann_sequences": (
            "Of these, those that there was something to learn from.",
            said.sequences,
        ),
        "giaann_prompts": ("Questions what comes next.", said.prompts),
        "giaann_refused": ("Questions that were refused.", said.refused),
        "giaann_unreadable": ("Requests that were no message.", said.unreadable),
        "giaann_received_bytes": ("Bytes of requests.", said.bytes_in),
        "giaann_sent_bytes": ("Bytes of answers.", said.bytes_out),
        "giaann_pushed_bytes": ("Bytes of questions, nearly all pushed.", node.calls.bytes_out),
        "giaann_calls": ("Questions to others.", node.calls.made),
        "giaann_calls_unanswered": ("Of these, without an answer.", node.calls.unanswered),
        "giaann_connections_lost": ("Connections that broke.", said.lost),
        "giaann_records_refused": ("Records that were forged or wrong.", directory.refused),
    }
    for name, (text, number) in counters.items():
        yield CounterMetricFamily(name, text, value=number)
    yield histogram("learn", "Seconds from an order until a chunk is learned.", said.learn_seconds)
