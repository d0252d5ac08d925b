"""Records, in a brain itself, the ids of the jobs under which it was published in swarms."""

from giaann_p2p.store.applied import JOB_BYTES
from giaann_p2p.store.store import Store

_PREFIX = "published "


def published_as(store: Store, swarm_id: bytes) -> list[bytes]:
    """Return the job ids under which a brain, now or earlier, was published in a swarm."""
    noted = store.notes.get(_PREFIX + swarm_id.hex(), b"")
    return [noted[at : at + JOB_BYTES] for at in range(0, len(noted), JOB_BYTES)]


def note_publication(store: Store, swarm_id: bytes, job: bytes) -> None:
    """Record durably that a brain is being published under a job id."""
    before = published_as(store, swarm_id)
    if job not in before:
        store.note(_PREFIX + swarm_id.hex(), b"".join([*before, job]))
