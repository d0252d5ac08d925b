"""Chooses where prompts are answered: by the swarm's compute peers, or in the client's process."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple

from giaann_p2p.client.launch import Launch
from giaann_p2p.client.prompting import Answer, ask
from giaann_p2p.client.session import Session, visit
from giaann_p2p.model.manner import Manner
from giaann_p2p.swarm.reading.row_vote import USUAL
from giaann_p2p.swarm.wire.link import Link


class Oracle(NamedTuple):
    """Answers prompts: call it with a prompt, and iterate over the answer for its tokens."""

    answer: Callable[[str, Manner], Answer]
    visiting: Session

    def __call__(self, prompt: str, manner: Manner) -> Answer:
        """Start to answer a prompt; return the answer to iterate over."""
        return self.answer(prompt, manner)


@asynccontextmanager
async def oracle(
    link: str,
    local: bool = False,
    device: str = "auto",
    verify: float = USUAL,
    launch: Launch | None = None,
) -> AsyncIterator[Oracle]:
    """Join a link's swarm and yield an `Oracle` that answers prompts from what the swarm learned.

    `local`: compute the answers in this process, on `device`, instead of at compute peers.
    `verify`: the share of the rows read in this process that is verified (see `visit`). With 1,
    answers are always computed here, because the answers of compute peers cannot be voted on.
    `launch`: a p2pd that the caller has started, as for `visit`.
    """
    async with visit(Link.read(link), launch, verify=verify) as visiting:
        if not (local or visiting.verify.all):
            yield Oracle(partial(ask, visiting), visiting)
            return
        from giaann_p2p.client.thinking import OwnAnswer, thinking  # slow to import, rarely needed
        from giaann_p2p.model.device import resolve

        async with thinking(visiting, resolve(device)) as ready:
            yield Oracle(partial(OwnAnswer, ready), visiting)
