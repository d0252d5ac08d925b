"""A storage peer's metrics for Prometheus, read from its counters at each request."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from giaann_p2p.node.replication.storage import StorageNode
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.members.capacity import FULL
from giaann_p2p.swarm.wire.replica import ReplicaState
from peers.metrics import counters, directory_metrics, gauges, histogram, request_metrics


def metrics_of(node: StorageNode, store: Store) -> Iterator[Metric]:
    """Yield all metrics of a storage peer."""
    yield from _gauges(node, store)
    yield from _counters(node)
    yield from directory_metrics(node.lookout)
    yield from request_metrics(node.counters, node.member)
    yield histogram("push", "Seconds from a push to its answer.", node.counters.push_seconds)
    yield histogram("read", "Seconds from a read to its answer.", node.counters.read_seconds)


def _gauges(node: StorageNode, store: Store) -> Iterator[Metric]:
    replicas = node.core.replicas
    shards = GaugeMetricFamily("giaann_shards", "Shards here, by state.", labels=["state"])
    for state in (ReplicaState.SYNCING, ReplicaState.READY, ReplicaState.DRAINING):
        shards.add_metric([state.name.lower()], len(replicas.all(state)))
    yield shards
    yield from gauges(
        giaann_ready=("1 if every shard that this peer owns is ready.", node.ready),
        giaann_store_bytes=("Memory that the store takes.", store.nbytes),
        giaann_capacity_bytes=("Memory that this peer gives to the swarm.", node.room.capacity),
        giaann_capacity_used_bytes=(
            "Memory used of the capacity; all of it once an update has found no room.",
            node.room.used,
        ),
        giaann_full=("1 if there is no room for further updates.", node.room.level == FULL),
        giaann_retained_delta_bytes=(
            "Deltas kept until every owner has them.",
            store.archive_bytes,
        ),
        giaann_unreadable_deltas=(
            "Kept deltas found to be unreadable on the disk.",
            store.unreadable,
        ),
        giaann_disputed_shards=(
            "Shards here of which most other owners hold a different content.",
            len(replicas.disputed),
        ),
        giaann_peers_called_wrong=(
            "Owners whose content differs from that of this peer and a majority.",
            len(node.core.auditing.wrong()),
        ),
        giaann_queue=("Writes waiting for the store.", len(node.store_writer)),
    )


def _counters(node: StorageNode) -> Iterator[Metric]:
    said = node.counters
    directory = node.lookout.view.directory
    yield from counters(
        giaann_audits=("Audits of other owners.", node.core.auditing.audits),
        giaann_pushes=("Updates received.", said.pushes),
        giaann_pushes_acknowledged=("Updates on the disk and acknowledged.", said.pushed),
        giaann_reads=("Requests for rows.", said.reads),
        giaann_rows=("Rows returned.", said.rows),
        giaann_connections=("Connections in the rows returned.", said.connections),
        giaann_questions=("Requests that are neither pushes nor reads.", said.questions),
        giaann_busy=("Requests refused because of overload.", said.busy),
        giaann_repairs=("Deltas and shards fetched from other peers.", said.repairs),
        giaann_withdrawn=("Updates of disowned peers withdrawn.", node.store_writer.withdrawn),
        giaann_records_turned_away=(
            "Records of new peers refused because the directory was full.",
            directory.turned_away,
        ),
    )
