"""What a storage peer shows to Prometheus, read from its counters when it is asked."""

from collections.abc import Iterator

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
)

from giaann_p2p.node.storage import StorageNode
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.replica import State
from peers.metrics import histogram


def metrics_of(node: StorageNode, store: Store) -> Iterator[Metric]:
    """Read what there is to be shown."""
    yield from _gauges(node, store)
    yield from _counters(node)
    yield histogram("push", "Seconds from a push to its answer.", node.counters.push_seconds)
    yield histogram("read", "Seconds from a read to its answer.", node.counters.read_seconds)


def _gauges(node: StorageNode, store: Store) -> Iterator[Metric]:
    replicas, directory = node.core.replicas, node.lookout.others.around.directory
    shards = GaugeMetricFamily("giaann_shards", "Shards here, by state.", labels=["state"])
    for state in (State.SYNCING, State.READY, State.DRAINING):
        shards.add_metric([state.name.lower()], len(replicas.all(state)))
    yield shards
    values = {
        "giaann_ready": ("1 if all that is to be here is ready.", node.ready),
        "giaann_store_bytes": ("Memory that the store takes.", store.nbytes),
        "giaann_retained_delta_bytes": (
            "Deltas kept until every owner has them.",
            store.archive_bytes,
        ),
        "giaann_unreadable_deltas": (
            "Kept deltas that were found to be unreadable on the disk.",
            store.unreadable,
        ),
        "giaann_disputed_shards": (
            "Shards here of which most other owners hold something else.",
            len(replicas.disputed),
        ),
        "giaann_peers_called_wrong": (
            "Owners that hold something else than this peer and a majority.",
            len(node.core.auditing.wrong()),
        ),
        "giaann_queue": ("Deeds that wait for the store.", len(node.keeper)),
        "giaann_directory_records": ("Records of peers that are known.", len(directory)),
    }
    for name, (text, value) in values.items():
        yield GaugeMetricFamily(name, text, value=float(value))


def _counters(node: StorageNode) -> Iterator[Metric]:
    said = node.counters
    directory = node.lookout.others.around.directory
    values = {
        "giaann_audits": ("Times that this peer tried other owners.", node.core.auditing.audits),
        "giaann_pushes": ("Updates that came.", said.pushes),
        "giaann_pushes_acknowledged": ("Updates that are on the disk.", said.pushed),
        "giaann_reads": ("Questions for rows.", said.reads),
        "giaann_rows": ("Rows that were told.", said.rows),
        "giaann_connections": ("Connections of these rows.", said.connections),
        "giaann_questions": ("Other questions.", said.questions),
        "giaann_refused": ("Questions that were refused.", said.refused),
        "giaann_busy": ("Of those, because there was too much to do.", said.busy),
        "giaann_unreadable": ("Requests that were no message.", said.unreadable),
        "giaann_received_bytes": ("Bytes of requests.", said.bytes_in),
        "giaann_sent_bytes": ("Bytes of answers.", said.bytes_out),
        "giaann_repairs": ("Deltas and shards fetched from others.", said.repairs),
        "giaann_withdrawn": ("Updates of disowned peers, withdrawn.", node.keeper.withdrawn),
        "giaann_connections_lost": ("Connections that broke.", said.lost),
        "giaann_records_refused": ("Records that were forged or wrong.", directory.refused),
        "giaann_records_turned_away": (
            "Records of new peers for which there was no room.",
            directory.turned_away,
        ),
    }
    for name, (text, value) in values.items():
        yield CounterMetricFamily(name, text, value=value)
