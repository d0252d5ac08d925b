"""Has a swarm learn texts that are sent to the gateway, and remembers which."""

import asyncio
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

import msgspec

from giaann_p2p.client.plain import taught_json
from giaann_p2p.client.session import Session
from giaann_p2p.client.trained import TrainProgress, TrainReport
from giaann_p2p.gateway.backend import Learned, Progress, Teaching
from giaann_p2p.gateway.failures import Busy
from giaann_p2p.gateway.views import ShownJob
from giaann_p2p.solo.corpus import opened
from giaann_p2p.solo.jobs import job_id
from giaann_p2p.swarm.wire.manifest import Manifest

if TYPE_CHECKING:
    from giaann_p2p.client.training import Trainer

_EVERY = 0.25
"""Seconds between two reports of progress."""
_MOST_AT_ONCE = 4
_MOST_KEPT = 256
"""Maximum number of jobs that are remembered; the newest are kept."""


class SwarmLessons:
    """Teaches a swarm through the sessions of a gateway."""

    def __init__(self) -> None:
        self._trainer: tuple[Session, Trainer] | None = None
        self._jobs: dict[bytes, ShownJob] = {}
        self._now = 0
        self._making = asyncio.Lock()

    @property
    def jobs(self) -> Mapping[bytes, ShownJob]:
        """The texts that were taught here by the ids of their jobs, the newest last."""
        return self._jobs

    async def learn(self, session: Session, name: str, text: str) -> Teaching:
        """Have the swarm learn a text; yield its progress, and at the end the report."""
        if self._now >= _MOST_AT_ONCE:
            raise Busy(f"{_MOST_AT_ONCE} texts are being learned; send this one again soon")
        self._now += 1
        if not any(map(str.isspace, text)):
            text += "\n"  # a word alone would be looked up as a file's name
        far = [Progress(name=name, done=0, of=None, share=0.0, rate=0.0)]
        task = asyncio.create_task(self._taught(session, name, text, far))
        try:
            chunk = session.around.rules.chunk
            number = await asyncio.to_thread(_job_of, text, session.manifest, chunk)
            while not task.done():
                self._note(number, far[0])
                yield far[0]
                await asyncio.wait([task], timeout=_EVERY)
            report = task.result()
            self._jobs.pop(number, None)  # it may have gone on in smaller chunks
            number = report.job
            chunks = report.chunks + report.chunks_known
            self._note(number, msgspec.structs.replace(far[0], done=chunks, of=chunks))
            yield Learned(report=taught_json(report))
        finally:
            self._now -= 1
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def close(self) -> None:
        """End the calls to peers."""
        if self._trainer is not None:
            trainer, self._trainer = self._trainer[1], None
            await trainer.close()

    async def _taught(
        self, session: Session, name: str, text: str, far: list[Progress]
    ) -> TrainReport:
        def watch(report: TrainReport, now: TrainProgress) -> None:
            waiting = f"waiting for {now.lacking}: {now.remedy}" if now.lacking else ""
            far[0] = Progress(
                name=name,
                done=now.committed,
                of=now.chunks,
                share=now.share,
                rate=now.rate,
                waiting=waiting,
            )

        trainer = await self._trainer_of(session)
        (report,) = await trainer.train(text, watch=watch)
        report.name = name
        return report

    async def _trainer_of(self, session: Session) -> "Trainer":
        """Return the trainer of a session; imports take seconds the first time."""
        await asyncio.to_thread(import_module, "giaann_p2p.client.training")
        from giaann_p2p.client.training import Trainer

        await session.join_dht()  # commits are counted over all owners
        async with self._making:
            if self._trainer is None or self._trainer[0] is not session:
                await self.close()
                self._trainer = session, Trainer(session)
            return self._trainer[1]

    def _note(self, number: bytes, far: Progress) -> None:
        self._jobs.pop(number, None)
        self._jobs[number] = ShownJob(
            id=number.hex(), name=far.name, chunks=far.done, of=far.of, mine=True
        )
        if len(self._jobs) > _MOST_KEPT:
            del self._jobs[next(iter(self._jobs))]


def _job_of(text: str, manifest: Manifest, chunk: int) -> bytes:
    """Return the id of the job under which a swarm learns a new text in chunks of this size."""
    with opened(text) as corpus:
        return job_id(corpus, 1, manifest.spec, chunk)
