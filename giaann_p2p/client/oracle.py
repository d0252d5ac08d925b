"""Whom a client has its prompts answered by: the compute peers of a swarm, or itself."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from giaann_p2p.client.prompting import Answer, ask
from giaann_p2p.client.visit import Visit, visit
from giaann_p2p.model.manner import Manner
from giaann_p2p.swarm.link import Link

Oracle = Callable[[str, Manner], Answer]
"""Returns an answer to a prompt, to be iterated over."""


@asynccontextmanager
async def oracle(link: str, local: bool = False, device: str = "auto") -> AsyncIterator[Oracle]:
    """Be ready to answer prompts with what the swarm of a link knows; `local`: compute here."""
    async with visit(Link.read(link)) as visiting:
        if not local:
            yield _asking(visiting)
            return
        from giaann_p2p.client.thinking import OwnAnswer, thinking  # seconds, for few who need it
        from giaann_p2p.model.device import resolve

        async with thinking(visiting, resolve(device)) as ready:
            yield lambda prompt, manner: OwnAnswer(ready, prompt, manner)


def _asking(visiting: Visit) -> Oracle:
    return lambda prompt, manner: ask(visiting, prompt, manner)
