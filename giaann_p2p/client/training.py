"""Having a text learned by a swarm: what is not committed yet is leased to compute peers.

1. Nothing of a job need be remembered. Its id follows from the text, and the owners of the shards
   tell what is committed; so it may be stopped, killed and begun again, by anybody, and twice.
2. Memory does not grow with the text: see `pages`.
3. In the end the owners are asked again. What they lack then is learned again, so that whatever
   happened to peers meanwhile, what is said to be learned is. Who said that it had brought what no
   owner knows of learns nothing more for this client.
4. Compute peers tell how they get on over the connections that were opened to them, for somebody
   behind a router cannot be dialled. A connection that is lost is opened anew from here.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from secrets import token_bytes
from typing import Literal

import msgspec
from pyroaring import BitMap

from giaann_p2p.client.leading import Leading, Tally
from giaann_p2p.client.pages import Pages
from giaann_p2p.client.trained import Lacking, LackingPeers, Standing, Taught
from giaann_p2p.client.visit import Visit
from giaann_p2p.errors import UsageError
from giaann_p2p.node.calls import Calls
from giaann_p2p.solo.corpus import Corpus, Source, opened
from giaann_p2p.solo.jobs import again, job_id
from giaann_p2p.store.applied import withdrawn_of
from giaann_p2p.swarm.actions import Call
from giaann_p2p.swarm.census import Census
from giaann_p2p.swarm.identity import Peer, name_of
from giaann_p2p.swarm.jury import Jury
from giaann_p2p.swarm.manifest import MOST_REDUNDANCY
from giaann_p2p.swarm.messages import AskManifest, Beat, Message, Refused, decode, encode
from giaann_p2p.swarm.pace import Pace
from giaann_p2p.swarm.policy import AtRandom, LeastOverlap
from giaann_p2p.swarm.schedule import Schedule
from giaann_p2p.swarm.trust import Trust

_TICK = 0.25
_TIMEOUT = 4.0
_AHEAD = 32
"""Chunks that are read ahead of those in flight, for a policy to choose from."""
_LATE = 1.0
"""Seconds for those who answer after enough others have."""
_AGAIN = 2.0
"""Seconds between two tries to reach a compute peer."""
_A_WHILE = 2.0
"""Seconds after which it is said that peers are lacking."""
_ROUNDS = 5
"""How often a text is gone through, at most, while its owners lack some of it."""
_NAMES = 8
"""Under how many names a text is learned, at most, while what was learned of it is withdrawn."""
_LOOKS, _BETWEEN = 6, 1.0
"""How often they are asked, and seconds between: some hear of a chunk a little after others."""
MOST_BATCH = 4096

Watch = Callable[[Taught, Standing], None]
PolicyName = Literal["overlap", "random"]


class Manner(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a text is learned."""

    epochs: int = 1
    """How often; each is a job of its own, one after the other."""
    policy: PolicyName = "overlap"
    """Which chunk is next: `overlap` takes one that has little in common with those in flight, so
    that fewer updates meet at the same owners; `random` any."""
    batch: int = 64
    """Chunks in flight at most, of all compute peers together. More: more peers have work; each
    takes the client some 10 KB of memory, and the swarm the work of a chunk if it is stopped."""
    redundancy: int = 1
    """How many compute peers have to come to the same, each by itself, before a chunk counts; the
    swarm's founder may ask for more."""
    check: float = 0.02
    """Share of the chunks that a second peer learns, too, to find out who is wrong. Of a peer that
    was not found right often yet, more."""
    patience: float = 60.0
    """Seconds to wait when there are no peers to learn, or too few to keep what is learned."""

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise UsageError(f"epochs must be 1 or more; it is {self.epochs}")
        if self.policy not in ("overlap", "random"):
            raise UsageError(f"policy must be overlap or random; it is {self.policy!r}")
        if not 1 <= self.batch <= MOST_BATCH:
            raise UsageError(f"batch must be 1 to {MOST_BATCH:,}; it is {self.batch:,}")
        if not 1 <= self.redundancy <= MOST_REDUNDANCY:
            most = f"1 to {MOST_REDUNDANCY}"
            raise UsageError(f"redundancy must be {most}; it is {self.redundancy}")
        if not 0 <= self.check <= 1:
            raise UsageError(f"check must be 0 to 1; it is {self.check}")
        if self.patience < 0:
            raise UsageError(f"patience must be 0 or more; it is {self.patience}")


class Trainer:
    """Has texts learned by the swarm that is visited. One for each visit; close it before that."""

    def __init__(self, visiting: Visit) -> None:
        self._visiting = visiting
        self._jobs: dict[bytes, _Job] = {}
        self._trust = Trust(token_bytes())
        self._calls = Calls(visiting.place.transport, self._failed)
        visiting.place.transport.serve(self._answer)
        visiting.place.transport.on_lost(lambda peer, _: self._lost(Peer(peer)))

    def __repr__(self) -> str:
        return f"<Trainer: {len(self._jobs)} jobs>"

    async def train(
        self,
        source: Source,
        manner: Manner | None = None,
        *,
        watch: Watch = lambda report, standing: None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> list[Taught]:
        """Have a text learned; return what came of each epoch, up to one that was stopped.

        TextError for what cannot be read, LackingPeers if there are no peers for too long.
        """
        manner = manner or Manner()
        reports = []
        with opened(source) as corpus:
            for epoch in range(1, manner.epochs + 1):
                report = await self._learn(corpus, epoch, manner, watch, should_stop)
                reports.append(report)
                if report.interrupted:
                    break
        return reports

    async def close(self) -> None:
        """Ask nothing more."""
        await self._calls.end()

    async def _learn(
        self,
        corpus: Corpus,
        epoch: int,
        manner: Manner,
        watch: Watch,
        should_stop: Callable[[], bool],
    ) -> Taught:
        number = job_id(corpus, epoch, self._visiting.manifest.spec)
        report, needless = Taught(corpus.name, corpus.size, epoch=epoch), BitMap()
        for _ in range(_NAMES):
            if number in self._jobs:
                raise UsageError(f"{corpus.name} is being learned already: wait until that is done")
            job = _Job(
                self._visiting, self._calls, number, corpus, manner, report, self._trust, needless
            )
            self._jobs[number] = job
            try:
                await job.run(watch, should_stop)
            finally:
                del self._jobs[number]
            if report.interrupted or not job.withdrawn:
                return report
            # Sets of chunks only grow: what was withdrawn comes back under another name.
            number, needless = again(number), job.chunks - job.withdrawn
        raise LackingPeers(
            f"{corpus.name}: what is learned of it is withdrawn again and again; ask the swarm's "
            "founder whose work is disowned"
        )

    async def _answer(self, peer: bytes, body: bytes) -> bytes:
        question = decode(body)
        self._visiting.gate.check(Peer(peer), question)
        if isinstance(question, Beat) and (job := self._jobs.get(question.job)) is not None:
            return encode(job.beat(Peer(peer), question))
        return encode(Refused("nothing is asked of a client but to hear how its jobs get on"))

    def _lost(self, peer: Peer) -> None:
        for job in self._jobs.values():
            job.lost.add(peer)

    def _failed(self, error: BaseException) -> None:
        for job in self._jobs.values():
            job.fail(error)


class _Job:
    """A text that is learned once."""

    def __init__(
        self,
        visiting: Visit,
        calls: Calls,
        number: bytes,
        corpus: Corpus,
        manner: Manner,
        report: Taught,
        trust: Trust,
        needless: BitMap,
    ) -> None:
        """`needless`: chunks that need not be learned under this number."""
        self.lost: set[Peer] = set()
        """Peers whose connections broke."""
        self.chunks = self.withdrawn = BitMap()
        """In the end: all there are, and those that were learned by somebody who is disowned."""
        self._needless = needless
        self._known: Callable[[BitMap], BitMap] = BitMap.copy
        """Returns those chunks that somebody has, by what the owners told last."""
        self._visiting, self._calls, self._number = visiting, calls, number
        self._corpus, self._manner, self._report = corpus, manner, report
        self._clock, self._others = visiting.clock, visiting.lookout.others
        self._tally, self._trust = Tally(report), trust
        self._redundancy = max(manner.redundancy, visiting.manifest.redundancy)
        self._news = asyncio.Event()
        self._fault: BaseException | None = None
        self._leading: Leading | None = None
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._lacking_since: float | None = None
        self._retry: dict[Peer, float] = {}
        self._heard: dict[Peer, tuple[int, int]] = {}  # by peer its newest record
        self._should_stop: Callable[[], bool]
        self._watch: Watch

    async def run(self, watch: Watch, should_stop: Callable[[], bool]) -> None:
        """Learn what is not learned yet, until the owners have all of it."""
        self._watch, self._should_stop = watch, should_stop
        try:
            known = committed = await self._count()
            known_before = self._report.chunks_known
            for _ in range(_ROUNDS):
                led = await self._go_through(committed)
                self.chunks = BitMap(range(led.pages.read))
                here = (known - self._needless - self.withdrawn) & self.chunks
                self._report.chunks_known = known_before + len(here)
                committed = await self._settled(len(self.chunks))
                if not (missing := self.chunks - committed - BitMap(self._report.given_up)):
                    return
                self._ask_after(missing, led)
            raise LackingPeers(
                f"{self._corpus.name}: storage peers lose what is learned again and again; look at"
                " `giaann status`, then train it again"
            )
        except _Stopped:
            self._report.interrupted = True
        finally:
            self._report.seconds = self._loop.time() - self._began

    def beat(self, peer: Peer, beat: Beat) -> Message:
        """Hear of a worker."""
        if self._leading is None:
            return Refused("this job is not led yet; tell again later")
        admission = self._visiting.gate.admission
        for came in beat.came:  # else who came to the same would bring in vain what no owner takes
            if why := admission.authored(came.voucher.author, came.voucher.token):
                return Refused(f"came: {why}")
        return self._leading.beat(peer, beat)

    def fail(self, error: BaseException) -> None:
        """Raise an error to who waits for the job."""
        self._fault = error
        self._news.set()

    def _ask_after(self, missing: BitMap, led: Leading) -> None:
        """See who said that it had brought what the owners know nothing of."""
        unknown = missing - self._known(missing)
        for peer, done in led.done.items():
            if count := len(done & unknown):
                self._trust.brought_nothing(peer)
                names = self._report.unbrought
                names[name_of(peer)] = names.get(name_of(peer), 0) + count

    async def _go_through(self, committed: BitMap) -> Leading:
        """Have all learned that is not committed; return who led it."""
        manner = self._manner
        most = manner.batch + _AHEAD
        pages = Pages(self._corpus, self._visiting.manifest.spec, committed, most)
        policy = (LeastOverlap if manner.policy == "overlap" else AtRandom)(self._number)
        pace, alone = Pace(in_flight=manner.batch), self._redundancy == 1
        schedule = Schedule(policy, committed, pace, alone=alone)
        swarm_id = self._visiting.manifest.swarm_id
        jury = Jury(swarm_id, self._number, self._redundancy, manner.check, self._trust)
        leading = Leading(
            self._number,
            pages,
            schedule,
            policy,
            self._calls,
            self._clock,
            self._tally,
            self._news,
            jury,
            self._trust,
        )
        self._leading = leading
        reading = self._loop.create_task(leading.read())
        reading.add_done_callback(lambda _: self._news.set())
        try:
            while not leading.over:
                if reading.done():
                    reading.result()
                workers = self._others.workers(self._clock())
                leading.tick(workers, self._announced())
                self._keep_in_touch(workers)
                away = self._trust.sends_away
                trusted = [p for p, slots in workers.items() if slots and not away(p)]
                there = len(trusted) >= self._redundancy or leading.working
                await self._pause(None if there else Lacking.COMPUTE)
        finally:
            self._leading = None
            self._report.checked += jury.checks
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        return leading

    def _announced(self) -> list[Peer]:
        """Return the compute peers that have renewed their records."""
        live = self._others.around.directory.live(self._visiting.lookout.time())
        said = {one.peer: (one.incarnation, one.sequence) for one in live if one.role == "compute"}
        news = [peer for peer, newest in said.items() if self._heard.get(peer) != newest]
        self._heard = said
        return news

    def _keep_in_touch(self, workers: Mapping[Peer, int]) -> None:
        """Connect again to compute peers that were lost: they cannot. They may also be dead."""
        now = self._loop.time()
        for peer in self.lost:
            self._retry.setdefault(peer, now)
        self.lost.clear()
        self._retry = {peer: due for peer, due in self._retry.items() if peer in workers}
        for peer in [peer for peer, due in self._retry.items() if due <= now]:
            del self._retry[peer]
            self._calls.start(Call(0, peer, AskManifest(), _TIMEOUT), partial(self._met, peer))

    def _met(self, peer: Peer, answer: Message | None) -> None:
        if answer is None:
            self._retry[peer] = self._loop.time() + _AGAIN
            if self._leading is not None:
                self._leading.lost(peer)

    async def _settled(self, chunks: int) -> BitMap:
        """Return what is committed, when that is all, or if it does not become more."""
        wanted = BitMap(range(chunks)) - BitMap(self._report.given_up)
        committed = await self._count()
        for _ in range(_LOOKS):
            if not wanted - committed:
                break
            await asyncio.sleep(_BETWEEN)
            committed = await self._count()
        return committed

    async def _count(self) -> BitMap:
        """Ask the owners what is committed."""
        manifest = self._visiting.manifest
        census = Census(
            self._number, manifest.layout.shards, manifest.quorum, self._others, _TIMEOUT
        )

        def ask(calls: Sequence[Call]) -> None:
            for call in calls:
                self._calls.start(call, partial(answered, call.number))

        def answered(number: int, answer: Message | None) -> None:
            ask(census.answered(number, answer, self._clock()))
            self._news.set()

        while census.committed is None:
            ask(census.tick(self._clock()))
            await self._pause(Lacking.STORAGE)
        until = self._loop.time() + _LATE
        while census.asking and self._loop.time() < until:
            await self._pause(None)
        self.withdrawn, self._known = withdrawn_of(census.committed), census.known
        return census.committed | self._needless

    async def _pause(self, lacking: Lacking | None) -> None:
        """Wait for news, and say how it goes; LackingPeers if peers are lacking for too long."""
        if self._fault is not None:
            raise self._fault
        if self._should_stop():
            raise _Stopped
        now = self._loop.time()
        if lacking is None:
            self._lacking_since = None
        elif self._lacking_since is None:
            self._lacking_since = now
        elif now - self._lacking_since > self._manner.patience:
            why = _why(lacking, self._manner.patience, self._redundancy)
            away = _sent_away(self._report) if lacking is Lacking.COMPUTE else ""
            raise LackingPeers(away + why)
        if self._lacking_since is None or now - self._lacking_since < _A_WHILE:
            lacking = None
        self._watch(self._report, self._standing(lacking))
        with suppress(TimeoutError):
            async with asyncio.timeout(_TICK):
                await self._news.wait()
        self._news.clear()

    def _standing(self, lacking: Lacking | None) -> Standing:
        report, leading = self._report, self._leading
        seconds = self._loop.time() - self._began
        rate = report.sentences / seconds if seconds else 0.0
        if leading is None:
            return Standing(0.0, 0, None, 0, rate, lacking)
        pages, committed = leading.pages, leading.committed
        share = committed / pages.read * self._corpus.share if pages.read else 0.0
        chunks = pages.read if pages.ended else None
        return Standing(share, committed, chunks, leading.working, rate, lacking)


class _Stopped(Exception):  # noqa: N818  (nothing went wrong)
    """Whoever wanted it learned wants it no more, for now."""


def _sent_away(report: Taught) -> str:
    """Return who was there and is asked no more, for whoever wonders why nobody is left."""
    if not (names := sorted(report.liars | report.unbrought.keys())):
        return ""
    return f"{', '.join(names)} did not do as they said, and learn nothing more; of others, "


def _why(lacking: Lacking, patience: float, redundancy: int) -> str:
    if lacking is Lacking.COMPUTE and redundancy > 1:
        what = f"{redundancy} compute peers have to come to the same, and there are fewer; start"
        what += " more of them, here or on other machines, with `giaann compute --join LINK`"
    elif lacking is Lacking.COMPUTE:
        what = "no compute peer is in the swarm; start one, here or on any machine, with"
        what += " `giaann compute --join LINK`"
    else:
        what = "too few storage peers answer to tell what is learned; see `giaann status`"
    return f"{what} (waited {patience:g} s). What was learned is kept: the same command goes on"
