"""The Python interface to a swarm: `AsyncSwarm` within an event loop, `Swarm` anywhere else.

    from giaann_p2p import Swarm

    with Swarm.join(link) as swarm:
        swarm.train(Path("text.txt"))
        print(swarm.generate("Bees make honey from", max_tokens=20).text)

A client is not a peer: it announces nothing and serves nothing. Transient errors are retried
silently. Permanent errors are raised, and their messages say what to do.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Self

from giaann_p2p.client.checkup import checked_now
from giaann_p2p.client.column import Column, column
from giaann_p2p.client.lies import Lie
from giaann_p2p.client.links import read_link
from giaann_p2p.client.portal import Portal
from giaann_p2p.client.prompting import Answer, ask
from giaann_p2p.client.session import Session, visit
from giaann_p2p.client.trained import TrainProgress, TrainReport
from giaann_p2p.client.training import PolicyName, Trainer
from giaann_p2p.client.training import TrainOptions as Teaching
from giaann_p2p.model.manner import Beam, Manner, Sampling, Variant
from giaann_p2p.model.prompt import checked_prompt
from giaann_p2p.model.said import AnyToken, Generation
from giaann_p2p.solo.source import Source
from giaann_p2p.swarm.members.checkup import Report
from giaann_p2p.swarm.members.overview import Overview
from giaann_p2p.swarm.reading.row_vote import USUAL

Watch = Callable[[TrainReport, TrainProgress], None]
"""Callback with the report so far and the progress of a text; called a few times a second."""

_AT_ONCE = 8
"""Maximum number of answers to one prompt that are generated at the same time."""


def _unwatched(_report: TrainReport, _standing: TrainProgress) -> None:
    pass


class AsyncSwarm:
    """A client of a swarm, for coroutines: `async with AsyncSwarm.join(link) as swarm`."""

    def __init__(self, visiting: Session, local: bool = False) -> None:
        """Use an open session; `local` computes answers in this process from the swarm's rows."""
        self._visiting, self._local = visiting, local or visiting.verify.all
        self._trainer: Trainer | None = None
        self._held = AsyncExitStack()
        self._thinking: Callable[[str, Manner], Answer] | None = None

    def __repr__(self) -> str:
        return f"<AsyncSwarm {self._visiting.manifest.name!r}>"

    @classmethod
    @asynccontextmanager
    async def join(
        cls, link: str, local: bool = False, verify: float = USUAL
    ) -> AsyncIterator[Self]:
        """Connect to the swarm of a link, given in full or by its saved name (`giaann join`).

        Raises Unreachable if no peer answers.

        `local`: answer prompts in this process, for swarms without compute peers.
        `verify`: the share of the rows read in this process that are also read from a second peer
        and compared; `lies` lists the wrong rows found. With 1, the owners of each row vote on it
        before it is used, reads without a majority raise Unreachable, and prompts are answered in
        this process.
        """
        async with visit(read_link(link), verify=verify) as visiting:
            swarm = cls(visiting, local)
            async with swarm._held:
                yield swarm

    @property
    def name(self) -> str:
        """The swarm's name, chosen by its founder."""
        return self._visiting.manifest.name

    @property
    def lies(self) -> list[Lie]:
        """The wrong rows that storage peers returned, as found so far.

        When owners return different rows, it takes about 15 seconds to decide which of them is
        wrong. That peer is then not read for a minute, doubled after each further lie.
        """
        return self._visiting.lies

    def status(self) -> Overview:
        """Return the live peers and the state of the shards, according to the peers' records."""
        return self._visiting.overview()

    async def fsck(self) -> Report:
        """Compare the digests of all replicas of all shards; return the report."""
        await self._visiting.join_dht()  # so that no replica is missed
        return await checked_now(self._visiting)

    async def column(self, noun: str, words: int = 16, leads: int = 4) -> Column:
        """Return a noun's column: its most frequent words, and the words that each leads to."""
        return await column(self._visiting, noun, words, leads)

    async def train(
        self,
        *sources: Source,
        epochs: int = 1,
        policy: PolicyName = "overlap",
        batch: int = 64,
        redundancy: int = 1,
        check: float = 0.02,
        patience: float = 60.0,
        progress: Watch = _unwatched,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> list[TrainReport]:
        """Have the swarm learn texts, once per epoch: strings, or files given as paths.

        Training may be cancelled, killed and restarted at any time, because the swarm knows what it
        has learned. LackingPeers is raised if no peers can learn it for `patience` seconds. A chunk
        counts once `redundancy` compute peers, or as many as the swarm requires, have computed the
        same result independently. With 1, a share `check` of the chunks, 0 to 1, is learned by a
        second peer to find wrong results. Peers with wrong results are in the reports (`liars`).
        """
        await self._visiting.join_dht()  # commits are counted over all owners
        if self._trainer is None:
            self._trainer = Trainer(self._visiting)
            self._held.push_async_callback(self._trainer.close)
        manner = Teaching(
            epochs=epochs,
            policy=policy,
            batch=batch,
            redundancy=redundancy,
            check=check,
            patience=patience,
        )
        reports: list[TrainReport] = []
        for source in sources:
            reports += await self._trainer.train(
                source, manner, watch=progress, should_stop=should_stop
            )
            if reports[-1].interrupted:
                break
        return reports

    async def stream(
        self,
        prompt: str,
        *,
        max_tokens: int = 80,
        timing: str = "auto",
        beam: Beam | None = None,
        variant: Variant | None = None,
        sampling: Sampling | None = None,
    ) -> Answer:
        """Continue a prompt; iterate over the returned answer for its tokens as they come.

        Timings, beams and variants are for the profile `words`, `sampling` is for `subwords`.
        """
        manner = Manner(
            max_tokens=max_tokens,
            timing=timing,
            beam=beam,
            variant=variant or Variant(),
            sampling=sampling or Sampling(),
        )
        prompt = checked_prompt(prompt)
        return (await self._oracle())(prompt, manner)

    async def generate(
        self,
        prompt: str,
        *,
        max_tokens: int = 80,
        timing: str = "auto",
        beam: Beam | None = None,
        variant: Variant | None = None,
        sampling: Sampling | None = None,
    ) -> Generation:
        """Continue a prompt by at most `max_tokens` tokens; return the complete answer."""
        answer = await self.stream(
            prompt,
            max_tokens=max_tokens,
            timing=timing,
            beam=beam,
            variant=variant,
            sampling=sampling,
        )
        return await answer.all()

    async def generate_each(
        self, prompt: str, answers: int, *, max_tokens: int = 80, sampling: Sampling
    ) -> list[Generation]:
        """Continue a prompt several times; each answer is drawn with the next seed.

        Some of the answers are generated at the same time.
        """
        turns = asyncio.Semaphore(_AT_ONCE)

        async def answer(one: Sampling) -> Generation:
            async with turns:
                return await self.generate(prompt, max_tokens=max_tokens, sampling=one)

        return await asyncio.gather(*map(answer, sampling.each(answers)))

    async def _oracle(self) -> Callable[[str, Manner], Answer]:
        if not self._local:
            return lambda prompt, manner: ask(self._visiting, prompt, manner)
        if self._thinking is None:
            from giaann_p2p.client.thinking import OwnAnswer, thinking  # the import takes seconds
            from giaann_p2p.model.device import resolve

            ready = await self._held.enter_async_context(thinking(self._visiting, resolve("auto")))
            self._thinking = lambda prompt, manner: OwnAnswer(ready, prompt, manner)
        return self._thinking


class BlockingAnswer(Iterator[AnyToken]):
    """An answer for synchronous callers: iterate over it for its tokens as they come."""

    def __init__(self, portal: Portal, answer: Answer) -> None:
        self._answer = answer
        self._tokens: Generator[AnyToken, None, None] = portal.iterate(answer)

    def __next__(self) -> AnyToken:
        return next(self._tokens)

    @property
    def prompt(self) -> str:
        """The prompt that the answer continues."""
        return self._answer.prompt

    @property
    def completion(self) -> str:
        """The missing rest of the prompt's last word; known from the first token on."""
        return self._answer.completion

    @property
    def unknown(self) -> list[str]:
        """The words of the prompt that the swarm never learned, as in `Generation.unknown`."""
        return self._answer.unknown

    @property
    def stopped(self) -> str | None:
        """Why the answer ended: `end` or `limit`, as in `Generation`; None until it has ended."""
        return self._answer.stopped

    def all(self) -> Generation:
        """Wait for the rest of the answer; return all of it, including the tokens so far."""
        for _ in self:
            pass
        answer = self._answer
        stopped = answer.stopped or "end"
        return Generation(
            answer.prompt, list(answer.tokens), answer.completion, answer.unknown, stopped
        )

    def close(self) -> None:
        """Cancel the answer; tokens that have not come yet never come."""
        self._tokens.close()


class Swarm:
    """A client of a swarm, for synchronous callers: `with Swarm.join(link) as swarm`.

    Its methods block, and Ctrl-C cancels them cleanly. It is thread-safe.
    """

    def __init__(self, portal: Portal, joined: AbstractAsyncContextManager[AsyncSwarm]) -> None:
        """Enter `joined` in the event loop of `portal`. Use `join` instead, which makes both."""
        self._portal, self._joined = portal, joined
        self._swarm = portal.run(_entered(joined))
        self._closed = False

    @classmethod
    def join(cls, link: str, local: bool = False, verify: float = USUAL) -> Self:
        """Connect to the swarm of a link; `AsyncSwarm.join` describes the arguments."""
        portal = Portal()
        try:
            return cls(portal, AsyncSwarm.join(link, local, verify))
        except BaseException:
            portal.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Swarm {self._swarm.name!r}>"

    def close(self) -> None:
        """Disconnect from the swarm and end its thread; closing again does nothing."""
        if not self._closed:
            self._closed = True
            try:
                self._portal.run(_left(self._joined))
            finally:
                self._portal.close()

    @property
    def name(self) -> str:
        """The swarm's name, chosen by its founder."""
        return self._swarm.name

    def status(self) -> Overview:
        """Return the live peers and the state of the shards, according to the peers' records."""

        async def told() -> Overview:
            return self._swarm.status()

        return self._portal.run(told())

    @property
    def lies(self) -> list[Lie]:
        """The wrong rows that storage peers returned, as found so far, like `AsyncSwarm.lies`."""

        async def told() -> list[Lie]:
            return self._swarm.lies

        return self._portal.run(told())

    def fsck(self) -> Report:
        """Compare the digests of all replicas of all shards; return the report."""
        return self._portal.run(self._swarm.fsck())

    def column(self, noun: str, words: int = 16, leads: int = 4) -> Column:
        """Return a noun's column: its most frequent words, and the words that each leads to."""
        return self._portal.run(self._swarm.column(noun, words, leads))

    def train(
        self,
        *sources: Source,
        epochs: int = 1,
        policy: PolicyName = "overlap",
        batch: int = 64,
        redundancy: int = 1,
        check: float = 0.02,
        patience: float = 60.0,
        progress: Watch = _unwatched,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> Sequence[TrainReport]:
        """Have the swarm learn texts, as `AsyncSwarm.train`; another thread calls `progress`."""
        return self._portal.run(
            self._swarm.train(
                *sources,
                epochs=epochs,
                policy=policy,
                batch=batch,
                redundancy=redundancy,
                check=check,
                patience=patience,
                progress=progress,
                should_stop=should_stop,
            )
        )

    def stream(
        self,
        prompt: str,
        *,
        max_tokens: int = 80,
        timing: str = "auto",
        beam: Beam | None = None,
        variant: Variant | None = None,
        sampling: Sampling | None = None,
    ) -> BlockingAnswer:
        """Continue a prompt; iterate over the returned answer for its tokens as they come."""
        begun = self._swarm.stream(
            prompt,
            max_tokens=max_tokens,
            timing=timing,
            beam=beam,
            variant=variant,
            sampling=sampling,
        )
        return BlockingAnswer(self._portal, self._portal.run(begun))

    def generate(
        self,
        prompt: str,
        *,
        max_tokens: int = 80,
        timing: str = "auto",
        beam: Beam | None = None,
        variant: Variant | None = None,
        sampling: Sampling | None = None,
    ) -> Generation:
        """Continue a prompt by at most `max_tokens` tokens; return the complete answer."""
        return self._portal.run(
            self._swarm.generate(
                prompt,
                max_tokens=max_tokens,
                timing=timing,
                beam=beam,
                variant=variant,
                sampling=sampling,
            )
        )

    def generate_each(
        self, prompt: str, answers: int, *, max_tokens: int = 80, sampling: Sampling
    ) -> list[Generation]:
        """Continue a prompt several times, like `AsyncSwarm.generate_each`."""
        return self._portal.run(
            self._swarm.generate_each(prompt, answers, max_tokens=max_tokens, sampling=sampling)
        )


async def _entered(joined: AbstractAsyncContextManager[AsyncSwarm]) -> AsyncSwarm:
    return await joined.__aenter__()


async def _left(joined: AbstractAsyncContextManager[AsyncSwarm]) -> None:
    await joined.__aexit__(None, None, None)
