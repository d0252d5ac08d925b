"""A swarm, as Python sees it: `AsyncSwarm` within an event loop, `Swarm` anywhere else.

    from giaann_p2p import Swarm

    with Swarm.join(link) as swarm:
        swarm.train(Path("text.txt"))
        print(swarm.generate("Bees make honey from", max_tokens=20).text)

Nothing is announced and nothing is served: who asks is no peer. What goes wrong for a while is
tried again in silence; what is wrong for good is raised, and says what to do about it.
"""

from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Self

from giaann_p2p.client.checkup import checked
from giaann_p2p.client.column import Column, column
from giaann_p2p.client.lies import Lie
from giaann_p2p.client.portal import Portal
from giaann_p2p.client.prompting import Answer, ask
from giaann_p2p.client.trained import Standing, Taught
from giaann_p2p.client.training import Manner as Teaching
from giaann_p2p.client.training import PolicyName, Trainer
from giaann_p2p.client.visit import Visit, visit
from giaann_p2p.model.manner import Beam, Manner, Variant
from giaann_p2p.model.said import Generation, Token
from giaann_p2p.solo.corpus import Source
from giaann_p2p.swarm.checkup import Report
from giaann_p2p.swarm.link import Link
from giaann_p2p.swarm.overview import Overview
from giaann_p2p.swarm.verifying import USUAL

Watch = Callable[[Taught, Standing], None]
"""Told, a few times a second, what came of a text so far, and how far it is."""


def _unwatched(_report: Taught, _standing: Standing) -> None:
    pass


class AsyncSwarm:
    """A swarm, for coroutines: `async with AsyncSwarm.join(link) as swarm`."""

    def __init__(self, visiting: Visit, local: bool = False) -> None:
        """Take a visit; `local` computes answers in this process, with the swarm's rows."""
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
        """Be with the swarm of a link; Unreachable if nobody there answers.

        `local`: answer prompts in this process, where nobody computes for others.
        `verify`: the share of the rows read in this process that a second peer is asked for, too.
        1: every row is put to the vote of its owners before it is used, Unreachable if there is no
        majority, and prompts are answered in this process. Who lied is in `lies`.
        """
        async with visit(Link.read(link), verify=verify) as visiting:
            swarm = cls(visiting, local)
            async with swarm._held:
                yield swarm

    @property
    def name(self) -> str:
        """The swarm's, as its founder chose it."""
        return self._visiting.manifest.name

    @property
    def lies(self) -> list[Lie]:
        """What storage peers were found to tell wrong so far.

        It takes some fifteen seconds from when peers differ until it is sure which of them is
        wrong; nothing is read from that one for a minute then, twice as long each further time.
        """
        return self._visiting.lies

    def status(self) -> Overview:
        """Return who is there, and how well the shards are held, by what peers say."""
        return self._visiting.overview()

    async def fsck(self) -> Report:
        """Compare all replicas of all shards, and what they come to."""
        visiting = self._visiting
        peers = visiting.storage_peers()
        return await checked(visiting.place.transport, visiting.manifest, peers)

    async def column(self, noun: str, words: int = 16, leads: int = 4) -> Column:
        """Return what is known of a noun: the words of its column, and what each leads to."""
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
    ) -> list[Taught]:
        """Have texts learned: strings, or the files that paths name; each is learned once.

        It may be cancelled, killed and begun again at any time: what is learned is known by the
        swarm. LackingPeers if nobody is there to learn it for `patience` seconds. So many compute
        peers as `redundancy` says, or as the swarm wants, have to come to the same, each by itself;
        of the rest a share is checked by a second peer (`check`). Who lied is told (`liars`).
        """
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
        reports: list[Taught] = []
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
    ) -> Answer:
        """Go on from a prompt: iterate over the answer for its tokens, as they come."""
        manner = Manner(
            max_tokens=max_tokens, timing=timing, beam=beam, variant=variant or Variant()
        )
        return (await self._oracle())(prompt, manner)

    async def generate(
        self,
        prompt: str,
        *,
        max_tokens: int = 80,
        timing: str = "auto",
        beam: Beam | None = None,
        variant: Variant | None = None,
    ) -> Generation:
        """Go on from a prompt, for at most `max_tokens` tokens."""
        answer = await self.stream(
            prompt, max_tokens=max_tokens, timing=timing, beam=beam, variant=variant
        )
        return await answer.all()

    async def _oracle(self) -> Callable[[str, Manner], Answer]:
        if not self._local:
            return lambda prompt, manner: ask(self._visiting, prompt, manner)
        if self._thinking is None:
            from giaann_p2p.client.thinking import OwnAnswer, thinking  # it takes seconds to load
            from giaann_p2p.model.device import resolve

            ready = await self._held.enter_async_context(thinking(self._visiting, resolve("auto")))
            self._thinking = lambda prompt, manner: OwnAnswer(ready, prompt, manner)
        return self._thinking


class BlockingAnswer(Iterator[Token]):
    """An answer in the making: iterate over it for its tokens, as they come."""

    def __init__(self, portal: Portal, answer: Answer) -> None:
        self._answer = answer
        self._tokens: Generator[Token, None, None] = portal.iterate(answer)

    def __next__(self) -> Token:
        return next(self._tokens)

    @property
    def prompt(self) -> str:
        """What it goes on from."""
        return self._answer.prompt

    @property
    def completion(self) -> str:
        """What the prompt's last word lacked, once a token has come."""
        return self._answer.completion

    @property
    def unknown(self) -> list[str]:
        """What of the prompt was never learned; see `Generation`."""
        return self._answer.unknown

    @property
    def stopped(self) -> str | None:
        """Once it has ended: `limit` or `end`, see `Generation`."""
        return self._answer.stopped

    def all(self) -> Generation:
        """Go on to the end; return the whole answer, with what was asked for before."""
        for _ in self:
            pass
        answer = self._answer
        stopped = answer.stopped or "end"
        return Generation(
            answer.prompt, list(answer.tokens), answer.completion, answer.unknown, stopped
        )

    def close(self) -> None:
        """Ask for no more."""
        self._tokens.close()


class Swarm:
    """A swarm: `with Swarm.join(link) as swarm`. Its methods block; Ctrl-C ends them in order.

    It may be used by several threads at once.
    """

    def __init__(self, portal: Portal, joined: AbstractAsyncContextManager[AsyncSwarm]) -> None:
        """See `join`."""
        self._portal, self._joined = portal, joined
        self._swarm = portal.run(_entered(joined))
        self._closed = False

    @classmethod
    def join(cls, link: str, local: bool = False, verify: float = USUAL) -> Self:
        """Be with the swarm of a link; see `AsyncSwarm.join`."""
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
        """Leave; nothing runs on."""
        if not self._closed:
            self._closed = True
            try:
                self._portal.run(_left(self._joined))
            finally:
                self._portal.close()

    @property
    def name(self) -> str:
        """The swarm's, as its founder chose it."""
        return self._swarm.name

    def status(self) -> Overview:
        """Return who is there, and how well the shards are held, by what peers say."""

        async def told() -> Overview:
            return self._swarm.status()

        return self._portal.run(told())

    @property
    def lies(self) -> list[Lie]:
        """What storage peers were found to tell wrong so far; see `AsyncSwarm.lies`."""

        async def told() -> list[Lie]:
            return self._swarm.lies

        return self._portal.run(told())

    def fsck(self) -> Report:
        """Compare all replicas of all shards, and what they come to."""
        return self._portal.run(self._swarm.fsck())

    def column(self, noun: str, words: int = 16, leads: int = 4) -> Column:
        """Return what is known of a noun: the words of its column, and what each leads to."""
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
    ) -> Sequence[Taught]:
        """Have texts learned; see `AsyncSwarm.train`. `progress` is called in another thread."""
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
    ) -> BlockingAnswer:
        """Go on from a prompt: iterate over the answer for its tokens, as they come."""
        begun = self._swarm.stream(
            prompt, max_tokens=max_tokens, timing=timing, beam=beam, variant=variant
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
    ) -> Generation:
        """Go on from a prompt, for at most `max_tokens` tokens."""
        return self._portal.run(
            self._swarm.generate(
                prompt, max_tokens=max_tokens, timing=timing, beam=beam, variant=variant
            )
        )


async def _entered(joined: AbstractAsyncContextManager[AsyncSwarm]) -> AsyncSwarm:
    return await joined.__aenter__()


async def _left(joined: AbstractAsyncContextManager[AsyncSwarm]) -> None:
    await joined.__aexit__(None, None, None)
