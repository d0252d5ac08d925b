"""Whom a client has its prompts answered by: the compute peers of a swarm, or itself."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple

from giaann_p2p.client.prompting import Answer, ask
from giaann_p2p.client.visit import Visit, visit
from giaann_p2p.model.manner import Manner
from giaann_p2p.swarm.link import Link
from giaann_p2p.swarm.verifying import USUAL


class Oracle(NamedTuple):
    """Call it for an answer to a prompt, to be iterated over."""

    answer: Callable[[str, Manner], Answer]
    visiting: Visit

    def __call__(self, prompt: str, manner: Manner) -> Answer:
        """Begin an answer."""
        return self.answer(prompt, manner)


@asynccontextmanager
async def oracle(
    link: str, local: bool = False, device: str = "auto", verify: float = USUAL
) -> AsyncIterator[Oracle]:
    """Be ready to answer prompts with what the swarm of a link knows; `local`: compute here.

    `verify` is for the rows that are read here, see `visit`. With 1 it is computed here in any
    case: what compute peers answer, nobody could put to the vote.
    """
    async with visit(Link.read(link), verify=verify) as visiting:
        if not (local or visiting.verify.all):
            yield Oracle(partial(ask, visiting), visiting)
            return
        from giaann_p2p.client.thinking import OwnAnswer, thinking  # seconds, for few who need it
        from giaann_p2p.model.device import resolve

        async with thinking(visiting, resolve(device)) as ready:
            yield Oracle(partial(OwnAnswer, ready), visiting)
