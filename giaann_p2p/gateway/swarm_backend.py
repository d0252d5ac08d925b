"""Serves a swarm, through a client's session that is kept and renewed."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec

from giaann_p2p import __version__
from giaann_p2p.client.column import column
from giaann_p2p.client.plain import overview_json
from giaann_p2p.client.prompting import Answer, ask
from giaann_p2p.client.roll_call import silent
from giaann_p2p.client.session import Session, visit
from giaann_p2p.gateway.backend import Facts, Teaching
from giaann_p2p.gateway.failures import Unavailable
from giaann_p2p.gateway.held_session import HeldSession
from giaann_p2p.gateway.releases import Releases
from giaann_p2p.gateway.shown_peers import Since, peers_now
from giaann_p2p.gateway.swarm_jobs import SwarmJobs
from giaann_p2p.gateway.swarm_lessons import SwarmLessons
from giaann_p2p.gateway.swarm_nouns import SwarmNouns
from giaann_p2p.gateway.turns import Turns
from giaann_p2p.gateway.views import Found, Jobs, PeersNow, ShownColumn
from giaann_p2p.model.manner import Manner, require, require_small
from giaann_p2p.node.reading.prompt_options import PromptOptions
from giaann_p2p.swarm.members.causes import cause_of
from giaann_p2p.swarm.members.commands import Commands
from giaann_p2p.swarm.members.overview import Overview
from giaann_p2p.swarm.wire.edition import rules_of
from giaann_p2p.swarm.wire.link import Link
from giaann_p2p.swarm.wire.manifest import Manifest, Rules

_PATIENCE = 20.0
"""Seconds without a new token after which a prompt fails with the last reason of a compute peer."""
_TURN_WITHIN, _FIRST_WITHIN = 20.0, 28.0
"""Seconds that a prompt waits for its turn, and until it has its first token or fails."""
_EACH = PromptOptions().sessions_each
_ANSWERS_WITHIN = 0.7
"""Timeout of each of three attempts to reach a peer: one that hangs is silent after 2 s."""
_SOON = 1.0
"""Seconds within which honest owners that returned different rows usually agree."""
_SHOWN_WITHIN = 25.0
"""Seconds within which a column or a search has its answer or fails: in a swarm that is half dead,
a column waits for its shards, then for its rows, then for the names of what they lead to."""
_FRESH = 0.5
"""Seconds for which a look at the peers is reused."""


class SwarmBackend:
    """A swarm behind the interface of `backend.Backend`; made by `swarm_backend`."""

    def __init__(self, held: HeldSession, *, training: bool) -> None:
        self._held, self._training = held, training
        self._manifest: Manifest = held.session.manifest
        self._since, self._releases, self._nouns = Since(), Releases(), SwarmNouns()
        self._lessons, self._learned = SwarmLessons(), SwarmJobs()
        self._turns = Turns(self._room)
        self._looking = asyncio.Lock()
        self._seen: Overview | None = None
        self._seen_at = float("-inf")

    def __repr__(self) -> str:
        return f"<SwarmBackend: {self._manifest.name!r}>"

    @property
    def session(self) -> Session:
        """The present session; Unavailable while there is none."""
        return self._held.session

    @property
    def facts(self) -> Facts:
        """The description of the swarm."""
        manifest = self._manifest
        return Facts(
            kind="swarm",
            name=manifest.name,
            profile=manifest.spec.profile,
            model=manifest.name,
            version=__version__,
            training=self._training,
            shards=self._rules.shards,
            replicas=self._rules.replicas,
        )

    @property
    def _rules(self) -> Rules:
        """The swarm's current rules; those of its manifest while there is no session."""
        try:
            return self._held.session.around.rules
        except Unavailable:
            return rules_of(self._manifest, None)

    @property
    def lacking(self) -> str:
        """Why prompts cannot be answered now; empty if they can."""
        session = self._held.session
        live = session.around.directory.live(session.now)
        if not any(said.role == "storage" for said in live):
            return "no storage peer is in this swarm now"
        if not any(said.role == "compute" and said.state == "active" for said in live):
            return "no compute peer is in this swarm now"
        return ""

    @property
    def lost(self) -> str:
        """The data that the swarm has lost, in words; empty if it has lost none."""
        session = self._held.session
        return session.losses().words(session.now)

    @asynccontextmanager
    async def answering(self, prompt: str, manner: Manner) -> AsyncIterator[Answer]:
        """Continue a prompt for as long as the context lasts; a compute peer that is not asked for
        more tokens forgets the prompt."""
        require(manner, self._manifest.spec.profile)
        require_small(prompt, manner)  # before it takes a turn, which others wait for
        async with self._turns.turn(_TURN_WITHIN) as waited:
            patience = min(_PATIENCE, _FIRST_WITHIN - waited)
            with self._held.using() as session:
                yield ask(session, prompt, manner, patience)

    def _room(self) -> int:
        """Return how many prompts the compute peers answer for this client at once."""
        try:
            session = self._held.session
        except Unavailable:
            return _EACH
        live = session.around.directory.live(session.now)
        return _EACH * max(1, sum(said.role == "compute" for said in live))

    async def overview(self) -> Overview:
        """Return the state of the swarm, with the peers that do not answer."""
        async with self._looking:
            clock = asyncio.get_running_loop().time
            if self._seen is None or clock() - self._seen_at > _FRESH:
                with self._held.using() as session:
                    live = session.around.directory.live(session.now)
                    peers = list({said.peer: None for said in live})
                    quiet = await silent(session.place.transport, peers, _ANSWERS_WITHIN, soon=True)
                    self._seen, self._seen_at = session.overview(quiet), clock()
            return self._seen

    async def status(self) -> dict[str, Any]:
        """Return the state as `giaann status --json` prints it, with what to do about it."""
        found = await self.overview()
        cause = cause_of(found)
        advice = cause.advice(found, self.session.commands) if cause else ""
        words = cause.words(found) if cause else ""
        return overview_json(found) | {"name": self._manifest.name, "why": words, "do": advice}

    async def peers(self) -> PeersNow:
        """Return the peers, and who holds each shard."""
        found, session = await self.overview(), self.session
        origins = self._releases.look(session)
        return peers_now(found, session.around.directory, self._since, origins)

    async def column(self, noun: str, words: int, leads: int) -> ShownColumn | None:
        """Return a noun's column; None if it was never learned."""
        with self._held.using() as session:
            known = len(session.lies)
            async with _answered_in_time():
                found = await column(session, noun, words, leads)
                await session.reading.settled(_SOON)
        if not found.words:
            return None
        lies = session.lies[known:]
        plain = msgspec.to_builtins(found) | {
            "lies": msgspec.to_builtins(lies),
            "undecided": session.reading.in_dispute,
        }
        return msgspec.convert(plain, ShownColumn)

    async def search(self, prefix: str, most: int) -> Found:
        """Return nouns that begin with a text, the most frequent first."""
        with self._held.using() as session:
            async with _answered_in_time():
                return await self._nouns.search(session, prefix, most)

    async def jobs(self) -> Jobs:
        """Return the texts that the swarm has learned, by their jobs, and who learned how much."""
        with suppress(Unavailable):  # what was known before is shown until the swarm is back
            await self._learned.look(self.session)
        return self._learned.jobs(self._lessons.jobs)

    async def train(self, name: str, text: str) -> Teaching:
        """Have the swarm learn a text; yield its progress, and at the end the report."""
        with self._held.using() as session:
            async for found in self._lessons.learn(session, name, text):
                yield found

    async def close(self) -> None:
        """End all work that is under way."""
        await self._lessons.close()
        await self._learned.close()
        await self._nouns.close()
        await self._releases.close()


@asynccontextmanager
async def swarm_backend(
    link: Link,
    commands: Callable[[bytes], Commands],
    *,
    training: bool = False,
    patience: float = 0.0,
) -> AsyncIterator[SwarmBackend]:
    """Join a swarm, and serve it for as long as the context lasts.

    `commands` takes a swarm's id, and returns the commands to recommend. `patience`: seconds for
    which to try again if the swarm cannot be joined at first.
    """
    held = HeldSession(lambda: _advised(link, commands), patience)
    try:
        await held.start()
        backend = SwarmBackend(held, training=training)
        try:
            yield backend
        finally:
            await backend.close()
    finally:
        await held.close()


@asynccontextmanager
async def _answered_in_time() -> AsyncIterator[None]:
    """Raise Unavailable if the block takes too long."""
    try:
        async with asyncio.timeout(_SHOWN_WITHIN):
            yield
    except TimeoutError:
        why = f"the swarm has not answered for {_SHOWN_WITHIN:g} s; try again"
        raise Unavailable(why) from None


@asynccontextmanager
async def _advised(link: Link, commands: Callable[[bytes], Commands]) -> AsyncIterator[Session]:
    """Join a swarm, and choose the commands that its messages recommend.

    This is done once per session, in a thread, because it looks at all processes of this machine:
    that takes longer than all other work of a gateway for a prompt.
    """
    async with visit(link) as session:
        session.commands = await asyncio.to_thread(commands, session.manifest.swarm_id)
        yield session
