"""What a compute peer shows to Prometheus, read from its counters when it is asked."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from giaann_p2p.node.compute import ComputeNode
from giaann_p2p.node.prompting import Prompting
from giaann_p2p.node.reading import Reading
from peers.metrics import histogram


def metrics_of(node: ComputeNode, prompting: Prompting, reading: Reading) -> Iterator[Metric]:
    """Read what there is to be shown."""
    yield from _of_work(node)
    yield from _of_prompts(prompting)
    yield from _of_reading(reading)


def _of_reading(reading: Reading) -> Iterator[Metric]:
    counters = {
        "giaann_rows_compared": (
            "Rows that were read to be compared, those put to the vote among them.",
            reading.compared,
        ),
        "giaann_rows_disputed": (
            "Times that peers told rows differently, and all owners were asked again.",
            reading.disputed,
        ),
        "giaann_lies": (
            "Times that a peer was found to tell wrong rows; the log names it.",
            reading.lies,
        ),
    }
    for name, (text, number) in counters.items():
        yield CounterMetricFamily(name, text, value=number)


def _of_prompts(prompting: Prompting) -> Iterator[Metric]:
    rows = prompting.rows.counters
    gauges = {
        "giaann_prompts_open": ("Prompts that are being answered.", len(prompting)),
        "giaann_row_cache_bytes": ("Memory of rows that were read.", prompting.rows.shelf.nbytes),
    }
    for name, (text, value) in gauges.items():
        yield GaugeMetricFamily(name, text, value=float(value))
    counters = {
        "giaann_prompts_begun": ("Prompts that were begun.", prompting.begun),
        "giaann_prompts_taken_up": (
            "Of these, those that went on from what another peer had said.",
            prompting.taken_up,
        ),
        "giaann_prompts_refused": ("Questions of prompts that were refused.", prompting.refused),
        "giaann_tokens": ("Tokens that were told.", prompting.tokens),
        "giaann_rows_asked": ("Rows that prompts asked for.", rows.asked),
        "giaann_rows_kept": ("Of these, those that were here.", rows.kept),
        "giaann_row_reads": ("Reads of rows that prompts waited for.", rows.reads),
        "giaann_rows_guessed": ("Rows that were read ahead.", rows.guesses),
        "giaann_rows_guessed_right": ("Of these, those asked for later.", rows.guessed_right),
    }
    for name, (text, number) in counters.items():
        yield CounterMetricFamily(name, text, value=number)


def _of_work(node: ComputeNode) -> Iterator[Metric]:
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
