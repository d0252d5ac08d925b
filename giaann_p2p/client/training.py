"""Trains a swarm on a text: leases the chunks that are not committed yet to compute peers.

1. A job has no state of its own. Its id is derived from the text, and the owners of the shards
   report which chunks are committed. So any client may stop, kill and restart a job, and two
   clients may even run it at once.
2. Memory does not grow with the text, because `pages` holds only some chunks at a time.
3. At the end the owners are asked again, and chunks that they lack are learned again. So a chunk is
   reported as learned only if the owners have it, whatever happened to peers meanwhile. A compute
   peer that reported chunks as committed that no owner knows of gets no more work from this client.
4. Compute peers report over the connections that the client opened to them, because a client
   behind a router cannot be dialled. The client reopens connections that break.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from secrets import token_bytes
from typing import Literal

import msgspec
from pyroaring import BitMap

from giaann_p2p.client import remedies
from giaann_p2p.client.begun import Begun, size_to_go_on
from giaann_p2p.client.job_run import JobRun, Tally
from giaann_p2p.client.pages import Pages
from giaann_p2p.client.session import Session
from giaann_p2p.client.trained import Lacking, LackingPeers, TrainProgress, TrainReport
from giaann_p2p.errors import UsageError
from giaann_p2p.model.profiles import profile_of
from giaann_p2p.node.calls import Calls
from giaann_p2p.solo.corpus import Corpus, opened
from giaann_p2p.solo.jobs import again, job_id
from giaann_p2p.solo.source import Source
from giaann_p2p.store.applied import withdrawn_of
from giaann_p2p.swarm.members.signs_of_life import SignsOfLife
from giaann_p2p.swarm.training.census import Census
from giaann_p2p.swarm.training.delta_agreement import DeltaAgreement
from giaann_p2p.swarm.training.lease_settings import LeaseSettings
from giaann_p2p.swarm.training.policy import AtRandom, LeastOverlap
from giaann_p2p.swarm.training.schedule import Schedule
from giaann_p2p.swarm.training.trust import Trust
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.identity import Peer, name_of
from giaann_p2p.swarm.wire.manifest import MOST_REDUNDANCY
from giaann_p2p.swarm.wire.member_messages import AskManifest
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Refusal, decode_question, encode
from giaann_p2p.swarm.wire.training_messages import Beat

_TICK = 0.25
"""Maximum number of seconds between two looks at a job."""
_TIMEOUT = 4.0
"""Timeout of a call to a peer, in seconds."""
_AHEAD = 32
"""Number of chunks read ahead of those in flight, so that the policy has a choice."""
_LATE = 1.0
"""Seconds to wait for further answers to a census after a quorum has answered."""
_AGAIN = 2.0
"""Seconds between two attempts to reconnect to a compute peer."""
_STALLED = 5.0
"""Seconds without a newly committed chunk after which the job counts as stalled."""
_A_WHILE = 2.0
"""Seconds for which peers must be lacking before users are told."""
_ROUNDS = 5
"""Maximum number of passes over a text while its owners lack some of it."""
_ANY_CHUNK = BitMap(range(1 << 20))
"""The numbers of all chunks that a text may have."""
_NAMES = 8
"""Maximum number of job ids under which a text is learned. Each withdrawal of chunks of the text
requires a new id."""
_LOOKS, _BETWEEN = 6, 1.0
"""Maximum number of further censuses at the end of a pass, and the seconds between them. They wait
for owners that get a chunk later than others."""
MOST_BATCH = 4096
"""Maximum of `TrainOptions.batch`."""

Watch = Callable[[TrainReport, TrainProgress], None]
PolicyName = Literal["overlap", "random"]


class TrainOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings for training a swarm on a text."""

    epochs: int = 1
    """Number of times that the text is learned. Each time is a job of its own."""
    policy: PolicyName = "overlap"
    """How the next chunk is chosen: `overlap` takes one that has little in common with the chunks
    in flight, so that fewer updates meet at the same owners; `random` takes any."""
    batch: int = 64
    """Maximum number of chunks in flight, at all compute peers together. A larger batch gives work
    to more peers. But each chunk takes some 10 KB of the client's memory, and work on chunks in
    flight is lost when the job is stopped."""
    redundancy: int = 1
    """Number of compute peers that must compute the same result independently before a chunk
    counts. The swarm's founder may require more."""
    check: float = 0.02
    """Share of the chunks, 0 to 1, that a second peer also learns, to detect wrong results. It is
    higher for peers with few confirmed results, unless it is 0."""
    patience: float = 60.0
    """Seconds for which to wait for missing compute or storage peers, or for room at them."""

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
    """Trains the swarm of a session. Use one trainer per session; close it before the session."""

    def __init__(self, visiting: Session) -> None:
        self._visiting = visiting
        self._jobs: dict[bytes, _Job] = {}
        self._trust = Trust(token_bytes())
        self._calls = visiting.calls(self._failed)
        visiting.place.transport.serve(self._answer)
        visiting.place.transport.on_lost(lambda peer, _: self._lost(Peer(peer)))

    def __repr__(self) -> str:
        return f"<Trainer: {len(self._jobs)} jobs>"

    async def train(
        self,
        source: Source,
        manner: TrainOptions | None = None,
        *,
        watch: Watch = lambda report, standing: None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> list[TrainReport]:
        """Have the swarm learn a text; return a report for each epoch that was begun.

        `should_stop` is called a few times a second; when it returns True, training stops, and the
        last report is marked as interrupted. Raises TextError if the text cannot be read, and
        LackingPeers if peers are lacking for too long.
        """
        manner = manner or TrainOptions()
        reports = []
        with opened(source) as corpus:
            for epoch in range(1, manner.epochs + 1):
                report = await self._learn(corpus, epoch, manner, watch, should_stop)
                reports.append(report)
                if report.interrupted:
                    break
        return reports

    async def close(self) -> None:
        """Cancel all calls to peers."""
        await self._calls.end()

    async def _learn(
        self,
        corpus: Corpus,
        epoch: int,
        manner: TrainOptions,
        watch: Watch,
        should_stop: Callable[[], bool],
    ) -> TrainReport:
        spec = self._visiting.manifest.spec
        unit = profile_of(spec).unit
        report = TrainReport(corpus.name, corpus.size, epoch=epoch, unit=unit)

        def job_of(number: bytes, size: int, needless: BitMap) -> _Job:
            return _Job(
                self._visiting,
                self._calls,
                number,
                corpus,
                size,
                manner,
                report,
                self._trust,
                needless,
            )

        sizes, begun = self._visiting.around.rules.sizes, dict[int, Begun]()
        for size in sizes if len(sizes) > 1 else ():
            asked = job_of(job_id(corpus, epoch, spec, size), size, BitMap())
            with self._running(asked):
                begun[size] = await asked.begun(watch, should_stop)
        size = size_to_go_on(sizes, begun)
        number, needless = job_id(corpus, epoch, spec, size), BitMap()
        report.job = number
        for _ in range(_NAMES):
            job = job_of(number, size, needless)
            with self._running(job):
                await job.run(watch, should_stop)
            if report.interrupted or not job.withdrawn:
                return report
            # A withdrawn chunk stays applied under its job id, so it is learned under another id.
            number, needless = again(number), job.chunks - job.withdrawn
        raise LackingPeers(
            f"{corpus.name}: its learned chunks keep being withdrawn; ask the swarm's founder "
            "which compute peers are disowned"
        )

    @contextmanager
    def _running(self, job: "_Job") -> Iterator[None]:
        """Answer the heartbeats on a job; UsageError if it runs already."""
        if job.number in self._jobs:
            raise UsageError(f"{job.name} is already being learned: wait until that ends")
        self._jobs[job.number] = job
        try:
            yield
        finally:
            del self._jobs[job.number]

    async def _answer(self, peer: bytes, body: bytes) -> bytes:
        question = decode_question(body)
        self._visiting.gate.check(Peer(peer), question)
        if isinstance(question, Beat) and (job := self._jobs.get(question.job)) is not None:
            return encode(job.beat(Peer(peer), question))
        return encode(Refusal("a client accepts only reports on its jobs"))

    def _lost(self, peer: Peer) -> None:
        for job in self._jobs.values():
            job.lost.add(peer)

    def _failed(self, error: BaseException) -> None:
        for job in self._jobs.values():
            job.fail(error)


class _Job:
    """A job: one epoch of a text, under one job id."""

    def __init__(
        self,
        visiting: Session,
        calls: Calls,
        number: bytes,
        corpus: Corpus,
        size: int,
        manner: TrainOptions,
        report: TrainReport,
        trust: Trust,
        needless: BitMap,
    ) -> None:
        """Prepare to learn a text in chunks of `size` sentences.

        Chunks in `needless` are skipped, because another job id covers them.
        """
        self.number = number
        self.lost: set[Peer] = set()
        """Peers whose connections broke since the last tick; they are to be reconnected."""
        self.chunks = self.withdrawn = BitMap()
        """At the end: all chunks of the text, and those that the founder has withdrawn."""
        self._needless = needless
        self._known: Callable[[BitMap], BitMap] = BitMap.copy
        """Returns those of the given chunks that may be committed, according to the last census."""
        self._visiting, self._calls, self._size = visiting, calls, size
        self._corpus, self._manner, self._report = corpus, manner, report
        self._clock, self._others = visiting.clock, visiting.lookout.view
        self._tally, self._trust = Tally(report), trust
        self._redundancy = max(manner.redundancy, visiting.manifest.redundancy)
        self._news = asyncio.Event()
        self._fault: BaseException | None = None
        self._leading: JobRun | None = None
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._lacking_since: float | None = None
        self._progress = 0, self._began  # chunks learned by this job, and the time of the last one
        self._retry: dict[Peer, float] = {}  # when to reconnect to each lost peer
        self._signs = SignsOfLife()
        self._should_stop: Callable[[], bool]
        self._watch: Watch

    @property
    def name(self) -> str:
        """The name of the text."""
        return self._corpus.name

    async def begun(self, watch: Watch, should_stop: Callable[[], bool]) -> Begun:
        """Return whether any chunk of this job was learned, according to its owners."""
        self._watch, self._should_stop = watch, should_stop
        try:
            committed = await self._count()
        except _Stopped:
            return Begun.NO  # the caller then runs another job, which stops, too
        if committed:  # these include withdrawn chunks
            return Begun.YES
        return Begun.PERHAPS if self._known(_ANY_CHUNK) else Begun.NO

    async def run(self, watch: Watch, should_stop: Callable[[], bool]) -> None:
        """Have the chunks learned that the owners lack, in several passes if needed."""
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
                f"{self._corpus.name}: storage peers keep losing what is learned; see `giaann"
                " status`, then train it again"
            )
        except _Stopped:
            self._report.interrupted = True
        finally:
            self._report.seconds = self._loop.time() - self._began

    def beat(self, peer: Peer, beat: Beat) -> Message:
        """Handle a worker's heartbeat; return the answer to it."""
        if self._leading is None:
            return Refusal("this job is not running now; report again later")
        admission = self._visiting.gate.admission
        for result in beat.results:  # an owner would refuse every push with this voucher
            if why := admission.authored(result.voucher.author, result.voucher.token):
                return Refusal(f"came: {why}")
        return self._leading.beat(peer, beat)

    def fail(self, error: BaseException) -> None:
        """Make `run` raise this error."""
        self._fault = error
        self._news.set()

    def _ask_after(self, missing: BitMap, led: JobRun) -> None:
        """Distrust workers that reported chunks as committed that no owner knows of."""
        unknown = missing - self._known(missing)
        for peer, done in led.done.items():
            if count := len(done & unknown):
                self._trust.brought_nothing(peer)
                names = self._report.unbrought
                names[name_of(peer)] = names.get(name_of(peer), 0) + count

    async def _go_through(self, committed: BitMap) -> JobRun:
        """Make one pass over the text and have uncommitted chunks learned; return the pass."""
        manner = self._manner
        most = manner.batch + _AHEAD
        manifest = self._visiting.manifest
        pages = Pages(self._corpus, profile_of(manifest.spec), committed, most, self._size)
        policy = (LeastOverlap if manner.policy == "overlap" else AtRandom)(self.number)
        pace, alone = LeaseSettings(in_flight=manner.batch), self._redundancy == 1
        schedule = Schedule(policy, committed, pace, alone=alone)
        swarm_id = self._visiting.manifest.swarm_id
        agreement = DeltaAgreement(
            swarm_id, self.number, self._redundancy, manner.check, self._trust
        )
        leading = JobRun(
            self.number,
            pages,
            schedule,
            policy,
            self._calls,
            self._clock,
            self._tally,
            self._news,
            agreement,
            self._trust,
            self._size,
        )
        self._leading = leading
        reading = self._loop.create_task(leading.read())
        reading.add_done_callback(lambda _: self._news.set())
        try:
            while not leading.over:
                if reading.done():
                    reading.result()
                workers = self._others.workers(self._clock())
                now = self._visiting.lookout.time()
                leading.tick(workers, self._signs.news(self._others.directory, now))
                self._keep_in_touch(workers)
                away = self._trust.sends_away
                trusted = [p for p, slots in workers.items() if slots and not away(p)]
                there = len(trusted) >= self._redundancy or leading.working
                await self._pause(self._stalled(leading) if there else Lacking.COMPUTE)
        finally:
            self._leading = None
            self._report.checked += agreement.checks
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        return leading

    def _stalled(self, leading: JobRun) -> Lacking | None:
        """Return why no chunk has been committed for a while; None if unknown, or not stalled."""
        now, chunks = self._loop.time(), self._report.chunks
        if chunks != self._progress[0]:
            self._progress = chunks, now
        if now - self._progress[1] < _STALLED:
            return None
        if self._visiting.full():
            return Lacking.ROOM
        return Lacking.KEEPERS if leading.awaited else None

    def _keep_in_touch(self, workers: Mapping[Peer, int]) -> None:
        """Reconnect to lost compute peers, because they cannot dial a client; some may be dead."""
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
        """Return the committed chunks, after waiting a few seconds for those not committed yet."""
        wanted = BitMap(range(chunks)) - BitMap(self._report.given_up)
        committed = await self._count()
        for _ in range(_LOOKS):
            if not wanted - committed:
                break
            await asyncio.sleep(_BETWEEN)
            committed = await self._count()
        return committed

    async def _count(self) -> BitMap:
        """Take a census: ask the owners which chunks are committed, and return those."""
        census = Census(self.number, self._others, _TIMEOUT)

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
        """Report progress, wait for news or a tick; LackingPeers if peers are lacking too long."""
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
            raise LackingPeers(
                f"{self._remedy(lacking)} (waited {self._manner.patience:g} s). {self._kept()}"
            )
        if self._lacking_since is None or now - self._lacking_since < _A_WHILE:
            lacking = None
        self._watch(self._report, self._standing(lacking))
        with suppress(TimeoutError):
            async with asyncio.timeout(_TICK):
                await self._news.wait()
        self._news.clear()

    def _standing(self, lacking: Lacking | None) -> TrainProgress:
        report, leading = self._report, self._leading
        seconds = self._loop.time() - self._began
        rate = report.sentences / seconds if seconds else 0.0
        remedy = self._remedy(lacking) if lacking else ""
        if leading is None:
            return TrainProgress(0.0, 0, None, 0, rate, lacking, remedy)
        pages, committed = leading.pages, leading.committed
        share = committed / pages.read * self._corpus.share if pages.read else 0.0
        chunks = pages.read if pages.ended else None
        return TrainProgress(share, committed, chunks, leading.working, rate, lacking, remedy)

    def _remedy(self, lacking: Lacking) -> str:
        """Return a message on what is lacking: the reason, and what to do about it."""
        if lacking is Lacking.COMPUTE:
            return remedies.sent_away(self._report) + remedies.no_workers(
                self._redundancy, self._visiting.commands
            )
        if lacking is Lacking.ROOM:
            return remedies.no_room(self._visiting.full(), self._visiting.commands)
        if lacking is Lacking.KEEPERS and self._leading is not None:
            return remedies.no_keepers(self._leading.awaited, self._visiting.commands)
        return (
            "too few storage peers answer to find out what is already learned; see `giaann status`"
        )

    def _kept(self) -> str:
        """Return a sentence that says how much of a text was learned, and how to go on."""
        if self._leading is None:
            return "What was learned is kept; run the same command again to continue"
        if not (chunks := self._leading.committed):
            what = f"Nothing of {self._corpus.name} is learned yet"
            return f"{what}; run the same command again to start"
        what = f"{chunks:,} chunk{'' if chunks == 1 else 's'} of {self._corpus.name}"
        return f"What was learned is kept ({what}); run the same command again to continue"


class _Stopped(Exception):  # noqa: N818  (nothing went wrong)
    """The caller asked the job to stop."""
