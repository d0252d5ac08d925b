"""The interface through which a gateway uses a swarm or a brain."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol

import msgspec

from giaann_p2p.client.prompting import Answer
from giaann_p2p.gateway.views import Found, Jobs, PeersNow, ShownColumn
from giaann_p2p.model.manner import Manner
from giaann_p2p.swarm.members.overview import Overview


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """A description of the swarm or the brain: the answer of `/api/info`."""

    kind: Literal["swarm", "brain"]
    name: str
    profile: str
    """How the model reads: `words` or `subwords`."""
    model: str
    """The model's id for programs that use OpenAI's interface."""
    version: str
    training: bool
    """Whether texts may be sent to `/api/train`."""
    shards: int
    replicas: int


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a text is learned."""

    name: str
    done: int
    """Chunks that are learned."""
    of: int | None
    """Chunks of the text; None until all of it has been read."""
    share: float
    """The share of the text that is learned, 0 to 1; an estimate until all of it has been read."""
    rate: float
    """Sentences or texts learned per second."""
    waiting: str = ""
    """Why the job is stuck, and what to do about it; empty if it makes progress."""


class Learned(msgspec.Struct, frozen=True, kw_only=True):
    """The end of training: how much was learned, as `giaann train --json` prints it."""

    report: dict[str, Any]


Teaching = AsyncGenerator[Progress | Learned, None]


class Backend(Protocol):
    """A swarm or a brain. Each method raises Unavailable while it cannot be reached."""

    @property
    def facts(self) -> Facts:
        """A description of the swarm or the brain."""
        ...

    @property
    def lacking(self) -> str:
        """Why prompts cannot be answered now; empty if they can."""
        ...

    @property
    def lost(self) -> str:
        """The data that the swarm has lost, in words; empty if it has lost none."""
        ...

    def answering(self, prompt: str, manner: Manner) -> AbstractAsyncContextManager[Answer]:
        """Continue a prompt for as long as the context lasts; leaving it cancels the work."""
        ...

    async def overview(self) -> Overview | None:
        """Return the state of a swarm, with the peers that do not answer; None for a brain."""
        ...

    async def status(self) -> dict[str, Any]:
        """Return the state as `giaann status --json` prints it, with what to do about it."""
        ...

    async def peers(self) -> PeersNow:
        """Return the peers, and who holds each shard; a brain has none."""
        ...

    async def column(self, noun: str, words: int, leads: int) -> ShownColumn | None:
        """Return a noun's column; None if it was never learned."""
        ...

    async def search(self, prefix: str, most: int) -> Found:
        """Return nouns that begin with a text, the most frequent first."""
        ...

    async def jobs(self) -> Jobs:
        """Return the texts that were learned, as far as they are known."""
        ...

    def train(self, name: str, text: str) -> Teaching:
        """Learn a text; yield its progress, and at the end the report."""
        ...
