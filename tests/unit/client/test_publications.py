"""A brain knows, for each swarm, the jobs as which it was published."""

from pathlib import Path

from giaann_p2p.client.publications import note_publication, published_as
from giaann_p2p.sim.lessons import SPEC
from giaann_p2p.store.applied import JOB_BYTES
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.store import Store

ONE, OTHER = bytes(32), bytes(range(32))
EARLY, LATE = b"e" * JOB_BYTES, b"l" * JOB_BYTES


def test_jobs_are_noted_once_by_swarm_and_kept(tmp_path: Path) -> None:
    with Store.at(tmp_path, SPEC, Layout(shards=1)) as store:
        assert published_as(store, ONE) == []
        for job in (EARLY, LATE, EARLY):
            note_publication(store, ONE, job)
        note_publication(store, OTHER, LATE)
    with Store.at(tmp_path) as store:
        assert published_as(store, ONE) == [EARLY, LATE]
        assert published_as(store, OTHER) == [LATE]
