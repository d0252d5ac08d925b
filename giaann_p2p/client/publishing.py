"""Brings a brain into a swarm: what it has learned is pushed to the owners, as a job of its own.

1. The brain's knowledge is cut into chunks of bounded size, always in the same way. The job's id
   follows from the brain's digest. So a chunk counts once, however often it is pushed, and an
   interrupted publication goes on where it stopped.
2. This client signs each chunk as its author, as a compute peer does. Where the swarm requires that
   several peers agree on a chunk, nothing can be published, because only a text can be learned by
   others again.
3. Knowledge that the brain and the swarm share would count twice. So the owners are asked first
   for the brain's texts, and for the jobs under which earlier states of the brain were published,
   because what it has learned since cannot be separated. If they know any, nothing is published,
   unless the user insists. The job id of a text depends on the size of its chunks, so the user must
   also insist if the swarm ever had chunks of another size than the brain.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

import numpy as np
from pyroaring import BitMap

from giaann_p2p.client.publications import note_publication, published_as
from giaann_p2p.client.session import Session
from giaann_p2p.errors import NotAdmitted, TokenError, UsageError
from giaann_p2p.model.delta import EMPTY, Delta
from giaann_p2p.model.digest import readable
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.node.members.membership import needs
from giaann_p2p.solo.jobs import distinct_sets
from giaann_p2p.store.applied import JOB_BYTES
from giaann_p2p.store.codec.parcel import encode
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.store.seal import made
from giaann_p2p.store.store import Store
from giaann_p2p.store.windows import count_of, windows
from giaann_p2p.swarm.training.census import Census
from giaann_p2p.swarm.training.pushed_chunk import Cut
from giaann_p2p.swarm.training.writer import Committed, WriteAction, Writer
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.limits import of_push
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Refusal
from giaann_p2p.swarm.wire.token import Rights
from giaann_p2p.swarm.wire.voucher import sealing, vouched

_AT_ONCE = 8
"""The number of chunks in flight."""
_TIMEOUT, _TICK = 4.0, 0.25
"""The timeout of a call, and the time between two checks for calls that are due, in seconds."""
_PATIENCE = 60.0
"""Seconds without any news from the owners after which publishing fails."""
Progress = Callable[[int, int], None]
"""Callback with the number of committed chunks, and of all chunks."""


class Published(NamedTuple):
    """The result of publishing a brain."""

    job: str
    chunks: int
    pushed: int
    """The number of chunks that were pushed now; the swarm had the others already."""
    rows: int
    connections: int
    digest: str
    """The digest of the brain."""


async def publish(
    visiting: Session,
    store: Store,
    *,
    anyway: bool = False,
    progress: Progress = lambda _done, _all: None,
) -> Published:
    """Bring the knowledge in a brain's store into a swarm; UsageError if it cannot be published.

    `anyway`: publish even if the swarm has learned some of the brain's texts; they count twice.
    """
    _check(visiting, store)
    await visiting.join_dht()  # so that no owner is missed
    publication, swarm_id = _Publication(visiting), visiting.manifest.swarm_id
    digest = store.digest()
    job = job_of(digest, swarm_id)
    if not anyway:
        earlier = {*published_as(store, swarm_id)}
        if job not in earlier:
            _check_sizes(store.layout.chunk, visiting.around.rules.sizes)
        await publication.check_overlap(store)
        await publication.check_earlier([*earlier - {job}])
    knowledge = await asyncio.to_thread(_knowledge, store, visiting.around.rules.layout)
    note_publication(store, swarm_id, job)  # before any of it can arrive
    pushed = await publication.push(job, knowledge, progress)
    known = store.statistics()
    return Published(
        job.hex(),
        count_of(knowledge, publication.most),
        pushed,
        known.rows,
        known.connections,
        readable(digest),
    )


def job_of(digest: int, swarm_id: bytes) -> bytes:
    """Return the id of the job under which a brain is published in a swarm."""
    parts = b"giaann publish\0" + digest.to_bytes(32, "little") + swarm_id
    return hashlib.blake2b(parts, digest_size=JOB_BYTES).digest()


def _check(visiting: Session, store: Store) -> None:
    manifest = visiting.manifest
    if differences := store.spec.differences(manifest.spec):
        raise UsageError(
            f"the brain's model is not the swarm's ({'; '.join(differences)}); publish it in a"
            " swarm of its own model. To give a GIAANNpy database the usual model of swarms, import"
            " it into a new brain: giaann solo import --model recommended"
        )
    if manifest.redundancy > 1:
        raise UsageError(
            f"in this swarm {manifest.redundancy} compute peers must learn each chunk with the"
            " same result, but they cannot learn a brain; train the swarm on the texts instead"
        )
    place, now = visiting.place, visiting.now
    try:
        needs(visiting.gate.admission, place.host.me, place.token, Rights.COMPUTE, now)
    except TokenError:
        raise NotAdmitted(
            "publishing needs a token with the right to compute; ask the founder for one"
        ) from None


def _check_sizes(mine: int, sizes: Sequence[int]) -> None:
    """Raise UsageError if the swarm may know a text of the brain under another job id."""
    if others := [f"{size:,}" for size in sizes if size != mine]:
        raise UsageError(
            f"this brain learned in chunks of {mine:,} sentences, the swarm in chunks of"
            f" {', '.join(others)}; so nobody can tell whether they share texts, which would count"
            " twice. If they share none: --anyway"
        )


def _knowledge(store: Store, layout: Layout) -> Delta:
    """Return all that a brain knows, with the columns cut that are cut in the swarm's layout."""
    return layout.columns.cut(store.knowledge())


class _Publication:
    """Pushes the chunks of one brain to their owners."""

    def __init__(self, visiting: Session) -> None:
        self._visiting, manifest = visiting, visiting.manifest
        layout = manifest.layout
        limits = of_push(manifest.spec, layout.chunk, layout.columns.most)
        self.most = min(limits.neurons - 1, limits.connections)
        """Maximum number of rows, and of connections, in a chunk."""
        self._writer = Writer(visiting.around, _TIMEOUT)
        self._calls = visiting.calls(self._failed)
        self._news = asyncio.Event()
        self._fault: BaseException | None = None
        self._heard = asyncio.get_running_loop().time()
        self._committed = BitMap()
        self._refused = ""
        """Why an owner refused; empty if an owner has accepted something since."""

    async def check_overlap(self, store: Store) -> None:
        """Raise UsageError if the swarm knows any of the brain's jobs.

        These are the jobs of all its shards; an interrupted pull leaves shards with different ones.
        """
        jobs = sorted({job for one in distinct_sets(store) for job in one})
        known = [job for job in jobs if await self._known(job)]
        if known:
            raise UsageError(
                f"the swarm has learned {len(known)} of the brain's {len(jobs)} texts already,"
                " which would count twice; to publish it nevertheless: --anyway"
            )

    async def check_earlier(self, jobs: Sequence[bytes]) -> None:
        """Raise UsageError if the swarm knows any of the jobs of the brain's earlier states."""
        known = [job for job in jobs if await self._known(job)]
        if known:
            raise UsageError(
                "an earlier state of this brain is in the swarm, and would count twice, as job"
                f" {', '.join(job.hex() for job in known)}; train the swarm on what the brain has"
                " learned since, or have the founder withdraw that job (giaann token withdraw"
                " --job); to publish it nevertheless: --anyway"
            )

    async def push(self, job: bytes, knowledge: Delta, progress: Progress) -> int:
        """Push the chunks that the owners lack; return their number."""
        total = count_of(knowledge, self.most)
        there = await self._known(job)
        left = ((at, part) for at, part in self._parts(knowledge) if at not in there)
        pushed = 0
        progress(len(there), total)
        more: tuple[int, Delta] | None = next(left, None)
        while more or len(self._writer):
            while more and len(self._writer) < _AT_ONCE:
                self._begin(job, *more)
                pushed, more = pushed + 1, next(left, None)
            self._do(self._writer.tick(self._visiting.clock()))
            await self._pause()
            progress(len(there) + len(self._committed), total)
        return pushed

    def _parts(self, knowledge: Delta) -> Iterator[tuple[int, Delta]]:
        return enumerate(windows(knowledge, self.most))

    def _begin(self, job: bytes, chunk: int, delta: Delta) -> None:
        """Seal a chunk, and begin to push it."""
        visiting, layout = self._visiting, self._visiting.around.rules.layout
        tree, homes = made(delta, layout), layout.shards_of(delta.concept, delta.feature)
        identity, token = visiting.place.host.identity, visiting.place.token
        swarm_id = visiting.manifest.swarm_id
        said = vouched(identity, swarm_id, job, chunk, tree.root, token or b"")
        seal = sealing([said], tree)
        self._do(self._writer.push(job, chunk, _cut(delta, homes), seal, visiting.clock()))

    async def _known(self, job: bytes) -> BitMap:
        """Ask the owners which chunks of a job are committed."""
        census = Census(job, self._visiting.around, _TIMEOUT)

        def ask(calls: Sequence[Call]) -> None:
            for call in calls:
                self._calls.start(call, partial(answered, call.number))

        def answered(number: int, answer: Message | None) -> None:
            self._heard_of(answer)
            ask(census.answered(number, answer, self._visiting.clock()))

        while (found := census.committed) is None:
            ask(census.tick(self._visiting.clock()))
            await self._pause()
        return found

    def _do(self, actions: Sequence[WriteAction]) -> None:
        for action in actions:
            if isinstance(action, Committed):
                self._committed.add(action.chunk)
            else:
                self._calls.start(action, partial(self._answered, action.number))

    def _answered(self, number: int, answer: Message | None) -> None:
        self._heard_of(answer)
        self._do(self._writer.answered(number, answer, self._visiting.clock()))

    def _heard_of(self, answer: Message | None) -> None:
        if isinstance(answer, Refusal):  # no news, because a full owner refuses for ever
            self._refused = answer.reason
        elif answer is not None:
            self._heard, self._refused = asyncio.get_running_loop().time(), ""
        self._news.set()

    def _failed(self, fault: BaseException) -> None:
        self._fault = fault
        self._news.set()

    async def _pause(self) -> None:
        """Wait for news, or a moment; Unreachable if there was no news for too long."""
        if self._fault is not None:
            raise self._fault
        if asyncio.get_running_loop().time() - self._heard > _PATIENCE:
            why = f" except to refuse ({self._refused})" if self._refused else ""
            raise Unreachable(
                f"no owner has answered for {_PATIENCE:g} s{why}; see `giaann status`, and run the"
                " same command again later: it goes on from here"
            )
        self._news.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(_TICK):
                await self._news.wait()


def _cut(delta: Delta, homes: Shards) -> Cut:
    def cut(shards: Shards) -> bytes:
        rows = np.isin(homes, shards)
        return encode(delta.only(rows) if rows.any() else EMPTY)

    return cut
