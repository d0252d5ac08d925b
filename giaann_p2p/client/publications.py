"""The jobs as which a brain was published in a swarm, noted in the brain itself."""

from giaann_p2p.store.applied import JOB_BYTES
from giaann_p2p.store.store import Store

_PREFIX = "published "


def published_as(store: Store, swarm_id: bytes) -> list[bytes]:
    """Return the jobs as which a brain, in this or an earlier state, was published in a swarm."""
    noted = store.notes.get(_PREFIX + swarm_id.hex(), b"")
    return [noted[at : at + JOB_BYTES] for at in range(0, len(noted), JOB_BYTES)]


def note_publication(store: Store, swarm_id: bytes, job: bytes) -> None:
    """Note durably that a brain is being published as a job."""
    before = published_as(store, swarm_id)
    if job not in before:
        store.note(_PREFIX + swarm_id.hex(), b"".join([*before, job]))
