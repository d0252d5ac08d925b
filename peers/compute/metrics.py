"""A compute peer's metrics for Prometheus, read from its counters at each request."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from giaann_p2p.node.reading.prompting import Prompting
from giaann_p2p.node.reading.reader import RowReader
from giaann_p2p.node.training.compute import ComputeNode
from peers.metrics import counters, directory_metrics, gauges, histogram, request_metrics


def metrics_of(node: ComputeNode, prompting: Prompting, reading: RowReader) -> Iterator[Metric]:
    """Yield all metrics of a compute peer."""
    yield from _of_work(node)
    yield from directory_metrics(node.lookout)
    yield from request_metrics(node.counters, node.member)
    yield from _of_prompts(prompting)
    yield from _of_reading(reading)


def _of_reading(reading: RowReader) -> Iterator[Metric]:
    yield from counters(
        giaann_rows_compared=(
            "Rows read from several owners and compared, including those put to the vote.",
            reading.compared,
        ),
        giaann_rows_disputed=(
            "Times that owners returned different rows, and all owners were asked again.",
            reading.disputed,
        ),
        giaann_lies=(
            "Times that a peer was caught returning wrong rows; the log names it.",
            reading.lies,
        ),
    )


def _of_prompts(prompting: Prompting) -> Iterator[Metric]:
    rows = prompting.rows.counters
    yield from gauges(
        giaann_prompts_open=("Prompts being answered.", len(prompting)),
        giaann_row_cache_bytes=("Memory of the row cache.", prompting.rows.shelf.nbytes),
    )
    yield from counters(
        giaann_prompts_begun=("Prompts started.", prompting.begun),
        giaann_prompts_taken_up=(
            "Prompts continued after another peer had begun the answer.",
            prompting.taken_up,
        ),
        giaann_prompts_refused=("Prompt requests refused.", prompting.refused),
        giaann_tokens=("Tokens returned.", prompting.tokens),
        giaann_rows_asked=("Rows that prompts needed.", rows.asked),
        giaann_rows_kept=("Rows that prompts needed and the cache had.", rows.kept),
        giaann_row_reads=("Reads of rows that prompts waited for.", rows.reads),
        giaann_rows_guessed=("Rows prefetched.", rows.guesses),
        giaann_rows_guessed_right=("Rows prefetched and needed later.", rows.guessed_right),
    )


def _of_work(node: ComputeNode) -> Iterator[Metric]:
    yield from gauges(
        giaann_ready=("1 if this peer accepts work.", node.ready),
        giaann_chunks_in_work=("Chunks being learned or pushed.", node.worker.busy),
    )
    said = node.counters
    yield from counters(
        giaann_orders=("Leases of chunks accepted.", said.orders),
        giaann_chunks_learned=("Chunks learned.", said.chunks),
        giaann_chunks_failed=("Chunks that could not be learned.", said.failed),
        giaann_sentences=("Sentences in the chunks learned.", said.sentences),
        giaann_sequences=(
            "Sentences that taught something, in the chunks learned.",
            said.sequences,
        ),
        giaann_prompts=("Prompt requests received.", said.prompts),
        giaann_pushed_bytes=(
            "Bytes of requests sent, nearly all pushes.",
            node.calls.bytes_out,
        ),
        giaann_calls=("Requests to other peers.", node.calls.made),
        giaann_calls_unanswered=(
            "Requests to other peers that got no answer.",
            node.calls.unanswered,
        ),
    )
    yield histogram(
        "learn", "Seconds from a chunk's lease until it is learned.", said.learn_seconds
    )
