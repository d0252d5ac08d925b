"""Adds a database to a brain, at most once, as a job like that of learning a text."""

import hashlib

import msgspec

from giaann_p2p.solo.giaannpy.reading import Database
from giaann_p2p.solo.jobs import Progress
from giaann_p2p.store.applied import JOB_BYTES
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """The result of importing a database; its counts are those of the database."""

    name: str
    known: bool
    """Whether the brain had imported the database before; then nothing was added."""
    columns: int
    neurons: int
    connections: int
    left_out: int
    nearest: int
    rounded: int
    flags_only: bool
    unknown: int


def learn(store: Store, database: Database) -> Imported:
    """Add a database to a store, durably; an interrupted import is continued."""
    job = _job(database)
    progress = Progress(store, job, f"{database.name} (a database of GIAANNpy)")
    known = progress.complete
    if not known:
        updates = [
            Update(job, number, store.shards, delta) for number, delta in enumerate(database.chunks)
        ]
        for update in updates:  # all of them, before the first is applied
            update.check(store.spec)
        for update in updates:
            if update.chunk not in progress.known:
                progress.learn(update.chunk, update.delta)
        progress.finish()
    return Imported(
        name=database.name,
        known=known,
        columns=database.columns,
        neurons=database.neurons,
        connections=database.connections,
        left_out=database.left_out,
        nearest=database.nearest,
        rounded=database.rounded,
        flags_only=database.flags_only,
        unknown=database.unknown,
    )


def _job(database: Database) -> bytes:
    """Return the id of the job; it depends on the content of the files, not on their folder."""
    parts = b"giaann import\0" + database.digest + database.spec.digest.encode()
    return hashlib.blake2b(parts, digest_size=JOB_BYTES).digest()
