"""The jobs of a brain: a note in the store for each text, beside the set of applied chunks."""

import hashlib
from collections.abc import Iterator

import msgspec

from giaann_p2p.errors import DamagedError
from giaann_p2p.model.delta import Delta
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.solo.corpus import Corpus
from giaann_p2p.store.applied import JOB_BYTES
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update

_PREFIX = "job "


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A text that was or is being learned."""

    name: str
    epoch: int = 1
    """The ordinal of this learning of the text, from 1."""
    chunks: int = 0
    """The number of chunks that were learned."""
    complete: bool = False
    foreign: bool = False
    """Whether a swarm learned it; the number of the text's chunks is then unknown here."""


class _Note(msgspec.Struct, frozen=True, array_like=True):
    name: str
    epoch: int
    complete: bool
    foreign: bool = False


def job_id(corpus: Corpus, epoch: int, spec: ModelSpec, sentences: int) -> bytes:
    """Return the id of the job of learning a text for the n-th time, in chunks of this size.

    It does not depend on the name of the text, and is the same for a brain and for a swarm.
    """
    parts = f"giaann job\0{corpus.digest}\0{epoch}\0{sentences}\0{spec.digest}"
    return hashlib.blake2b(parts.encode(), digest_size=JOB_BYTES).digest()


def again(job: bytes) -> bytes:
    """Return the id of the job that relearns withdrawn chunks of a job, with their old numbers."""
    return hashlib.blake2b(b"giaann job again\0" + job, digest_size=JOB_BYTES).digest()


class Progress:
    """The progress of a job. Each chunk is applied to all shards, so any shard has the full set."""

    def __init__(self, store: Store, job: bytes, name: str, epoch: int = 1) -> None:
        self._store, self._id = store, job
        self._key = _PREFIX + job.hex()
        self._name, self._epoch = name, epoch
        self.known = store.applied(int(store.shards[0]), self._id)
        """The chunks that were learned before."""
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
    """Note the name of a job that was learned elsewhere, unless it has a name here."""
    key = _PREFIX + job.hex()
    if key not in store.notes:
        store.note(key, msgspec.msgpack.encode(_Note(name, 1, complete=False, foreign=True)))


def jobs(store: Store) -> Iterator[Job]:
    """Iterate over the jobs; one that is incomplete and has no chunk is left out."""
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


def _note_of(value: bytes) -> _Note:
    try:
        return msgspec.msgpack.decode(value, type=_Note)
    except msgspec.MsgspecError as error:
        raise DamagedError(f"a note in the store is not that of a brain: {error}") from None
