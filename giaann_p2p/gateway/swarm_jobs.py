"""The jobs of a whole swarm, and who learned how much: its owners are asked while somebody looks.

Swarms keep no names of texts, and know the length of a text only while it is being learned. So jobs
of others are shown by their ids, and without a total.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress

import msgspec

from giaann_p2p.client.learned import (
    RefusedError,
    agreed,
    chunks_by_owner,
    shard_to_ask,
    signed_by,
)
from giaann_p2p.client.session import Session
from giaann_p2p.errors import DamagedError, PeerError
from giaann_p2p.gateway.authors import Authors
from giaann_p2p.gateway.job_rates import JobRates
from giaann_p2p.gateway.views import Contributor, Jobs, ShownJob
from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.wire.identity import Peer, name_of

_EVERY = 2.0
"""Seconds between two looks; a look takes one small question to each owner of a shard."""
_FIRST = 3.0
"""Seconds to wait for the first look."""
_MOST_SHOWN = 256
"""Maximum number of jobs of others, and of contributors, in an answer."""
_SOON = "the owners are being asked what others taught; ask again soon"
_TOO_FEW = "too few owners answer to say what others taught"
_MEMBERS_ONLY = "owners name authors only to members that may store; this gateway may not"


class SwarmJobs:
    """What a swarm has learned, by job and by author."""

    def __init__(self) -> None:
        self._authors, self._rates = Authors(), JobRates()
        self._chunks = Applied()
        self._by_author: dict[bytes, Counter[Peer]] = {}  # of each job
        self._shard: int | None = None
        self._told: dict[Peer, Applied] = {}
        self._note, self._refused = _SOON, False
        self._looked = float("-inf")
        self._looking: asyncio.Task[None] | None = None

    async def look(self, session: Session) -> None:
        """Start to ask the owners if that is due; wait only for the first look."""
        clock = asyncio.get_running_loop().time
        idle = self._looking is None or self._looking.done()
        if idle and clock() - self._looked >= _EVERY:
            self._looking = asyncio.create_task(self._look(session))
            if self._looked < 0:
                await asyncio.wait([self._looking], timeout=_FIRST)

    async def close(self) -> None:
        """End a look, if one is under way."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    def jobs(self, own: Mapping[bytes, ShownJob]) -> Jobs:
        """Return all jobs, those in progress last, and the contributors.

        `own`: the jobs that this gateway teaches or taught, by id, the newest last.
        """
        others = sorted((job for job in self._chunks if job not in own), key=self._rates.rate)
        left_out = max(0, len(others) - _MOST_SHOWN)
        order = [*others[left_out:], *own]
        order.sort(key=lambda job: self._rates.rate(job) > 0)  # stable
        total, texts = Counter[Peer](), Counter[Peer]()
        for by_author in self._by_author.values():
            total.update(by_author)
            texts.update(by_author.keys())
        contributors = [
            Contributor(author=name_of(peer), chunks=chunks, sentences=None, texts=texts[peer])
            for peer, chunks in sorted(total.items(), key=lambda one: (-one[1], one[0]))
        ]
        return Jobs(
            jobs=[self._shown(job, own.get(job)) for job in order],
            contributors=contributors[:_MOST_SHOWN],
            note=self._notes(left_out),
        )

    def _shown(self, job: bytes, own: ShownJob | None) -> ShownJob:
        shown = own or ShownJob(id=job.hex(), name=None, chunks=0, of=None)
        names = [name_of(peer) for peer in self._by_author.get(job, ())]
        return msgspec.structs.replace(
            shown,
            chunks=max(shown.chunks, len(self._chunks.of(job))),
            author=names[0] if len(names) == 1 else None,
            authors=len(names),
            rate=round(self._rates.rate(job), 2),
        )

    def _notes(self, left_out: int) -> str:
        notes = [self._note] if self._note else []
        if left_out:
            notes.append(f"{left_out:,} more texts of others are not listed")
        if self._refused:
            notes.append(_MEMBERS_ONLY)
        elif unknown := self._authors.unknown(self._chunks):
            notes.append(f"the authors of {unknown:,} chunks are no longer known")
        return "; ".join(notes)

    async def _look(self, session: Session) -> None:
        try:
            await self._count(session)
            await self._ask_for_authors(session)
            found = ((job, self._authors.of(job, self._chunks)) for job in self._chunks)
            self._by_author = {job: by_author for job, by_author in found if by_author}
        finally:
            self._looked = asyncio.get_running_loop().time()

    async def _count(self, session: Session) -> None:
        """Ask the owners of a shard what they have learned."""
        if self._shard is None:  # each gateway asks others, so that no owner has all the work
            self._shard = random.randrange(session.around.rules.shards)  # noqa: S311
        shard = shard_to_ask(session, self._shard)
        if shard != self._shard:
            self._shard, self._told = shard, {}
        self._told = await chunks_by_owner(session, shard, self._told)
        quorum = session.around.rules.quorum
        if len(self._told) < quorum:
            self._note = _TOO_FEW
            return
        self._note, self._chunks = "", agreed(self._told.values(), quorum)
        counts = {job: len(self._chunks.of(job)) for job in self._chunks}
        self._rates.look(counts, asyncio.get_running_loop().time())

    async def _ask_for_authors(self, session: Session) -> None:
        """Ask one owner after another who signed the chunks that were not asked about before."""
        wanted = self._authors.unsettled(self._chunks)
        gone: Applied | None = None
        for peer in self._told:
            if not wanted or self._shard is None:
                return
            with suppress(PeerError, DamagedError):  # the next owner may answer
                try:
                    signed = await signed_by(session, peer, self._shard, wanted)
                except RefusedError:
                    self._refused = True
                    return
                self._refused = False
                self._authors.settle(signed.authors)
                wanted = self._authors.unsettled(wanted)
                gone = signed.gone if gone is None else gone & signed.gone
        if gone is not None:
            self._authors.give_up(wanted & gone)
