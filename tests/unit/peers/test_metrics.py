"""What daemons show to Prometheus, read as Prometheus reads it."""

import random
import re
from collections.abc import Callable, Iterable
from functools import partial

import pytest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from bootstrap.metrics import metrics_of as of_bootstrap
from bootstrap.node import BootstrapNode
from giaann_p2p.model.rows import Neuron
from giaann_p2p.net.hive.daemon_limits import Figures
from giaann_p2p.net.memory_board import MemoryBoard
from giaann_p2p.node.counters import Histogram
from giaann_p2p.node.reading.reader import RowReader
from giaann_p2p.swarm.reading.row_vote import Verify
from peers.compute.metrics import metrics_of as of_compute
from peers.metrics import Metrics, histogram
from peers.storage.metrics import metrics_of as of_storage
from tests.helpers_swarm import LESSONS
from tests.unit.bootstrap.helpers import booted
from tests.unit.node.helpers import ALL, GIB, MANIFEST, Client, Town, play
from tests.unit.node.training.helpers_compute import Visitor, Workshop, no_prompts, written

UNITS = ("seconds", "bytes", "total", "info")
THINGS = {"giaann_shards", "giaann_ready", "giaann_queue", "giaann_directory_records"} | {
    "giaann_tasks",
    "giaann_chunks_in_work",
    "giaann_prompts_open",
    "giaann_full",
    "giaann_unreadable_deltas",
    "giaann_disputed_shards",
    "giaann_peers_called_wrong",
}
"""Plain numbers of something that the name says."""


def families(read: Callable[[], Iterable[Metric]]) -> dict[str, Metric]:
    """Return what Prometheus makes of the page; those of the process itself left out."""
    page = Metrics(read).page()
    assert page.status == 200
    assert page.type.startswith("text/plain")
    text = page.body.decode()
    for name in re.findall(r"^(giaann_\w+?)(?:\{.*\})? ", text, re.MULTILINE):
        base = re.sub(r"_(bucket|count|sum|created)$", "", name)
        assert f"# HELP {base} " in text, name
        assert f"# TYPE {base} " in text, name
    found = list(text_string_to_metric_families(text))
    assert any(one.name == "process_resident_memory_bytes" for one in found)
    return {one.name: one for one in found if one.name.startswith("giaann_")}


def check(found: dict[str, Metric]) -> None:
    for name, one in found.items():
        assert len(one.documentation) > 10, name
        assert one.documentation.endswith("."), name
        assert one.type in ("gauge", "counter", "histogram"), name
        written = f"{name}_total" if one.type == "counter" else name
        assert written in THINGS or written.endswith(UNITS), name


def test_a_storage_peer_shows_what_it_does() -> None:
    async def story(town: Town) -> None:
        houses = [town.add() for _ in range(3)]
        client = Client(town)
        await town.until(town.settled)
        await client.push_all(range(3))
        node, store = houses[0].node, houses[0].store
        await town.until(lambda: node.counters.pushed >= 3)
        asked = LESSONS.neurons(1)
        rows = [row for row in await client.reading.rows(asked) if row]
        few = [row for row in await client.reading.rows(asked[:2]) if row]
        found = families(partial(of_storage, node, store))
        check(found)
        values = {
            (sample.name, *sample.labels.values()): sample.value
            for one in found.values()
            for sample in one.samples
        }
        assert values["giaann_shards", "ready"] == len(ALL)
        assert values["giaann_shards", "syncing"] == 0
        assert values["giaann_ready",] == 1
        assert values["giaann_pushes_total",] == node.counters.pushes
        told = [house.node.counters for house in houses]
        assert values["giaann_rows_total",] == node.counters.rows
        assert values["giaann_connections_total",] == node.counters.connections
        assert sum(one.rows for one in told) == len(rows) + len(few)
        assert sum(one.connections for one in told) == sum(len(r.target) for r in rows + few)
        assert values["giaann_push_seconds_count",] == sum(node.counters.push_seconds.counts)
        assert values["giaann_store_bytes",] == store.nbytes
        assert values["giaann_capacity_bytes",] == GIB
        assert 0 < values["giaann_capacity_used_bytes",] < GIB
        assert values["giaann_full",] == 0
        node.room.refused(GIB)
        (full,) = (one for one in of_storage(node, store) if one.name == "giaann_full")
        assert full.samples[0].value == 1
        assert values["giaann_unreadable_deltas",] == store.unreadable == 0
        assert values["giaann_directory_records",] == 3

    play(story)


def test_a_compute_peer_shows_what_it_does() -> None:
    async def story(town: Town) -> None:
        for _ in range(3):
            town.add()
        shop, visitor = Workshop(town, 101), Visitor(town)
        await town.until(town.settled)
        await visitor.trainer.train(written(130))
        prompting = no_prompts()
        others, verify = shop.node.lookout.view, Verify(1.0)
        reading = RowReader(shop.transport, MANIFEST, others, shop.node.clock, verify=verify)
        asked = [Neuron(concept, 0) for concept in range(1, 8)]
        await reading.rows(asked)
        found = families(partial(of_compute, shop.node, prompting, reading))
        check(found)
        values = {one.name: one.value for told in found.values() for one in told.samples}
        assert values["giaann_ready"] == 1
        assert values["giaann_chunks_in_work"] == 0
        assert values["giaann_chunks_learned_total"] == 3
        assert values["giaann_sentences_total"] == 130
        assert values["giaann_sequences_total"] == 127
        assert values["giaann_pushed_bytes_total"] > 1000
        assert values["giaann_learn_seconds_count"] == 3
        assert values["giaann_prompts_open"] == values["giaann_tokens_total"] == 0
        assert values["giaann_rows_compared_total"] == reading.compared >= 2 * len(asked)
        assert values["giaann_rows_disputed_total"] == values["giaann_lies_total"] == 0
        await reading.close()
        await prompting.close()
        await visitor.close()
        await shop.end()

    play(story)


def test_a_bootstrap_peer_shows_what_it_does() -> None:
    async def story(node: BootstrapNode, board: MemoryBoard) -> None:
        found = families(partial(of_bootstrap, node))
        check(found)
        assert found["giaann_directory_records"].samples[0].value == 0

    booted(story, random.Random(1))


@pytest.mark.parametrize(
    ("seconds", "first", "last"),
    [((), 0, 0), ((0.00005,), 1, 1), ((0.002, 0.002, 99.0), 0, 3)],
)
def test_buckets_of_a_histogram_add_up(seconds: tuple[float, ...], first: int, last: int) -> None:
    times = Histogram()
    for one in seconds:
        times.took(one)
    found = families(lambda: [histogram("read", "Seconds from a read on.", times)])
    buckets = [one for one in found["giaann_read_seconds"].samples if one.name.endswith("bucket")]
    values = [one.value for one in buckets]
    assert values == sorted(values)
    assert (values[0], values[-1]) == (first, last)
    assert buckets[-1].labels == {"le": "+Inf"}
    totals = {one.name: one.value for one in found["giaann_read_seconds"].samples}
    assert totals["giaann_read_seconds_count"] == len(seconds)
    assert totals["giaann_read_seconds_sum"] == pytest.approx(sum(seconds))


def test_a_page_is_made_afresh() -> None:
    count = iter(range(9))
    page = Metrics(lambda: [Metric("giaann_x", f"The {next(count)}th of them.", "gauge")])
    assert page.page().body != page.page().body


class P2pd:
    """A host of which nothing is known but that its p2pd has ended twice."""

    deaths, disconnected = 2, 7
    figures: Figures | None = None


def test_what_p2pd_takes_is_shown_where_it_is_known() -> None:
    host = P2pd()
    told = Metrics(list, host).page().body.decode()
    assert "giaann_p2pd_restarts_total 2.0" in told
    assert "giaann_p2pd_strangers_disconnected_total 7.0" in told
    assert "giaann_p2pd_resident" not in told
    host.figures = Figures(memory=60_000_000, descriptors=30, seconds=1.5, moved=9)
    told = Metrics(list, host).page().body.decode()
    assert "giaann_p2pd_resident_memory_bytes 6e+07" in told
    assert "giaann_p2pd_open_fds 30.0" in told
    assert "giaann_p2pd_cpu_seconds 1.5" in told
