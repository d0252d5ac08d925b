"""Prompts to a swarm, timed where its user sits; with what each token cost whoever found it."""

import asyncio
import hashlib
import time
from collections.abc import Mapping, Sequence

from giaann_p2p.client.prompting import ComputePeers, SwarmAnswer
from giaann_p2p.client.session import Session
from giaann_p2p.model.manner import Manner
from giaann_p2p.swarm.reading.prompt_routing import ComputeLoads
from giaann_p2p.swarm.wire.identity import Peer
from tests.benchmarks.swarm.said import Said

_MICRO = 1e-6
_NUMBER_BYTES = 16


class Only:
    """One compute peer: whoever is asked again has the rows that it was asked for before."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    def loads(self, now: float) -> Mapping[Peer, int]:
        """Return it."""
        return {self._peer: 0}


def computing(visiting: Session) -> list[Peer]:
    """Return the compute peers that are known."""
    return sorted(everybody(visiting).loads(0))


def everybody(visiting: Session) -> ComputePeers:
    """Return whom a client asks."""
    return ComputePeers(visiting.around, visiting.lookout.time)


async def in_turn(
    visiting: Session, others: ComputeLoads, prompts: Sequence[str], most: int
) -> Said:
    """Ask prompts one after the other."""
    began, said = time.perf_counter(), Said()
    for prompt in prompts:
        said.add(await _asked(visiting, others, prompt, most))
    said.seconds = time.perf_counter() - began
    return said


async def at_once(
    visiting: Session, others: ComputeLoads, prompts: Sequence[str], most: int
) -> Said:
    """Ask all of them at the same time."""
    began, said = time.perf_counter(), Said()
    asking = [_asked(visiting, others, prompt, most) for prompt in prompts]
    for one in await asyncio.gather(*asking):
        said.add(one)
    said.seconds = time.perf_counter() - began
    return said


async def _asked(visiting: Session, others: ComputeLoads, prompt: str, most: int) -> Said:
    # The same prompt draws the same peer from those that have as much to do.
    number = hashlib.blake2b(prompt.encode(), digest_size=_NUMBER_BYTES).digest()
    answer = SwarmAnswer(
        visiting.place.transport,
        others,
        visiting.clock,
        prompt,
        Manner(max_tokens=most),
        number=number,
    )
    said, began = Said(), time.perf_counter()
    async for _ in answer:
        if not said.first:
            said.first.append(time.perf_counter() - began)
    said.seconds = time.perf_counter() - began
    said.answers.append(said.seconds)
    said.tokens, said.costs = len(answer.tokens), answer.costs
    said.texts.append("".join(token.text for token in answer.tokens))
    said.token_seconds = [cost.micros * _MICRO for cost in answer.costs[1:]]
    said.begun = [answer.begun] if answer.begun else []
    return said
