"""The jobs of a brain: for each text, a note in the store and a set of applied chunks."""

import hashlib
from collections.abc import Iterator
from functools import reduce
from operator import and_

import msgspec
from pyroaring import BitMap

from giaann_p2p.errors import DamagedError
from giaann_p2p.model.delta import Delta
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.solo.corpus import Corpus
from giaann_p2p.store.applied import JOB_BYTES, Applied
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update

_PREFIX = "job "


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A text that was or is being learned."""

    name: str
    epoch: int = 1
    """1 if the text is learned for the first time, 2 for the second time, and so on."""
    chunks: int = 0
    """The number of chunks that were learned."""
    complete: bool = False
    foreign: bool = False
    """Whether a swarm learned the text; how many chunks it has in total is then unknown here."""


class _Note(msgspec.Struct, frozen=True, array_like=True):
    name: str
    epoch: int
    complete: bool
    foreign: bool = False


def job_id(corpus: Corpus, epoch: int, spec: ModelSpec, sentences: int) -> bytes:
    """Return the id of the job that learns a text in the given epoch, in chunks of this size.

    The id does not depend on the name of the text, and is the same for a brain and for a swarm.
    """
    parts = f"giaann job\0{corpus.digest}\0{epoch}\0{sentences}\0{spec.digest}"
    return hashlib.blake2b(parts.encode(), digest_size=JOB_BYTES).digest()


def again(job: bytes) -> bytes:
    """Return the id of the job that relearns withdrawn chunks of a job, with their old numbers."""
    return hashlib.blake2b(b"giaann job again\0" + job, digest_size=JOB_BYTES).digest()


class Progress:
    """The progress of a job. A chunk is learned once all shards have applied it.

    Learning applies each chunk to all shards at once, but a pull that was interrupted leaves shards
    with different chunks. A chunk that some shards lack is learned again, for these shards only.
    """

    def __init__(self, store: Store, job: bytes, name: str, epoch: int = 1) -> None:
        self._store, self._id = store, job
        self._key = _PREFIX + job.hex()
        self._name, self._epoch = name, epoch
        self.known = _learned_by_all(store, job)
        """The chunks that all shards had applied before this object was made."""
        noted = store.notes.get(self._key)
        self.complete = noted is not None and _note_of(noted).complete
        self._noted = noted is not None

    def learn(self, chunk: int, delta: Delta) -> None:
        """Add a chunk to the brain, durably."""
        if not self._noted:
            self._note(complete=False)
        delta = self._store.layout.columns.cut(delta)
        self._store.apply([Update(self._id, chunk, self._store.shards, delta)])
        if self._store.snapshot_due:
            self._store.snapshot()

    def finish(self) -> None:
        """Record that the whole text is learned."""
        self._note(complete=True)
        self.complete = True

    def _note(self, complete: bool) -> None:
        note = _Note(self._name, self._epoch, complete)
        self._store.note(self._key, msgspec.msgpack.encode(note))
        self._noted = True


def note_foreign(store: Store, job: bytes, name: str) -> None:
    """Save the name of a job that a swarm learned, unless the store already has a note of it."""
    key = _PREFIX + job.hex()
    if key not in store.notes:
        store.note(key, msgspec.msgpack.encode(_Note(name, 1, complete=False, foreign=True)))


def jobs(store: Store) -> Iterator[Job]:
    """Iterate over the jobs of a store; incomplete jobs without any chunk are left out."""
    for key, value in store.notes.items():
        if not key.startswith(_PREFIX):
            continue
        note = _note_of(value)
        chunks = store.applied(int(store.shards[0]), bytes.fromhex(key[len(_PREFIX) :]))
        if len(chunks) or note.complete:
            yield Job(
                name=note.name,
                epoch=note.epoch,
                chunks=len(chunks),
                complete=note.complete,
                foreign=note.foreign,
            )


def distinct_sets(store: Store) -> list[Applied]:
    """Return the sets of applied chunks that a store's shards have, usually just one."""
    sets = store.sets(store.shards.tolist()).values()
    return list({id(one): one for one in sets}.values())  # shards with equal sets share one object


def _learned_by_all(store: Store, job: bytes) -> BitMap:
    """Return the chunks of a job that all shards have applied."""
    return reduce(and_, [one.of(job) for one in distinct_sets(store)]).copy()


def _note_of(value: bytes) -> _Note:
    try:
        return msgspec.msgpack.decode(value, type=_Note)
    except msgspec.MsgspecError as error:
        raise DamagedError(f"a brain's note in the store cannot be decoded: {error}") from None
