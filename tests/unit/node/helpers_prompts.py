"""A town that has learned a text, and peers in it that answer prompts."""

import asyncio
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from giaann_p2p.client.prompting import SwarmAnswer
from giaann_p2p.model.activation import Batch
from giaann_p2p.model.answer import Continuation
from giaann_p2p.model.delta import EMPTY, Delta, total
from giaann_p2p.model.manner import Beam, Manner
from giaann_p2p.model.parse import Parser
from giaann_p2p.model.rows import Rows, run
from giaann_p2p.model.said import Generation
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.text import text_sentences
from giaann_p2p.model.words_profile import WordsProfile
from giaann_p2p.node.reading.prompting import Prompting, PromptOptions
from giaann_p2p.sim.lessons import SPEC
from giaann_p2p.store.codec.parcel import encode as parcel_of
from giaann_p2p.store.layout import Shards
from giaann_p2p.store.seal import made
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.messages import Refusal, decode, encode
from giaann_p2p.swarm.wire.prompt_messages import Ask
from tests.helpers import DATA
from tests.unit.node.helpers import JOB, LAYOUT, Client, Town

CPU = torch.device("cpu")
MANNERS = {
    "auto": Manner(max_tokens=40),
    "exact": Manner(max_tokens=40, timing="exact"),
    "seq": Manner(max_tokens=12, timing="seq"),
    "none": Manner(max_tokens=12, timing="none"),
    "beam": Manner(max_tokens=6, beam=Beam(width=2, depth=2)),
}


def prompts(count: int, words: int = 9) -> list[str]:
    """Return the first words of some of wiki.txt's sentences."""
    text = (DATA / "wiki.txt").read_text()
    sentences = [one.text.split() for one in text_sentences(text, 20_000)]
    return [" ".join(one[:words]) for one in sentences if len(one) > 2 * words][:count]


def expected(
    rows: Rows, parser: Parser, prompt: str, manner: Manner, spec: ModelSpec = SPEC
) -> Generation:
    """Return what one machine answers that has all rows."""
    going_on = Continuation(prompt, Batch(spec), manner)
    run(going_on.begin(parser.parse_prompt(list(text_sentences(prompt, 20_000)))), rows)
    tokens = list(iter(lambda: run(going_on.next(), rows), None))
    stopped = going_on.stopped or "end"
    return Generation(prompt, tokens, going_on.completion, going_on.unknown, stopped)


async def taught(town: Town, delta: Delta, houses: int = 3) -> Client:
    """Have some storage peers learn a text."""
    for _ in range(houses):
        town.add()
    client = Client(town)
    await town.until(town.settled)
    await asyncio.sleep(15)  # until the client knows, too
    numbers = LAYOUT.shards_of(delta.concept, delta.feature).astype(np.int64)
    parts = delta.cut(numbers)

    def cut(shards: Shards) -> bytes:
        return parcel_of(total([parts.get(number, EMPTY) for number in shards.tolist()]))

    tree = made(delta, LAYOUT)
    await client.pusher.push(JOB, 0, cut, tree)
    await asyncio.sleep(15)
    return client


def profile_with(parser: Parser, spec: ModelSpec) -> WordsProfile:
    """Return a profile that uses a parser which is loaded already."""
    profile = WordsProfile(spec, CPU)
    profile.parser = parser
    return profile


class Oracle:
    """A compute peer that only answers prompts."""

    def __init__(
        self, town: Town, number: int, parser: Parser, options: PromptOptions | None = None
    ) -> None:
        self.town, self.parser, self.options = town, parser, options
        self.number = number
        self.client = Client(town, number)
        self.me = self.client.me
        reading = self.client.reading
        self.prompting = Prompting(
            reading.rows,
            profile_with(parser, SPEC),
            options,
            frequent=reading.nouns.most,
            received=lambda: reading.calls.bytes_in,
        )
        self.client.transport.serve(self._answer)
        self.dead = False

    async def _answer(self, peer: bytes, body: bytes) -> bytes:
        ask = decode(body)
        if not isinstance(ask, Ask):
            return encode(Refusal("this is not a question for a compute peer"))
        return encode(await self.prompting.answer(Peer(peer), ask))

    def freeze(self, frozen: bool = True) -> None:
        """Stand still, as far as others can see, or wake."""
        others = [peer for peer in self.town.peers if peer != self.me]
        self.town.network.freeze(self.me, others, frozen)

    async def die(self) -> None:
        """Be gone; who is connected notices, as when a process is killed."""
        self.dead = True
        self.town.network.stop(self.me)
        for other in self.town.peers:
            self.town.network.reset(self.me, other)
        await self.close()

    def successor(self) -> "Oracle":
        """Return one that begins where this one has died, as somebody else."""
        return Oracle(self.town, self.number + 2, self.parser, self.options)

    async def close(self) -> None:
        await self.prompting.close()


class Known:
    """Compute peers that a client knows of."""

    def __init__(self, *oracles: Oracle) -> None:
        self.there: Mapping[Peer, int] = dict.fromkeys([Peer(one.me) for one in oracles], 0)

    def loads(self, now: float) -> Mapping[Peer, int]:
        return self.there


def asked(client: Client, known: Known, prompt: str, manner: Manner) -> SwarmAnswer:
    """Return an answer of the swarm to a prompt."""
    number = client.town.chance.randbytes(16)
    return SwarmAnswer(client.transport, known, client.clock, prompt, manner, number=number)


def tokens_of(told: Generation) -> Sequence[object]:
    """Return all that is to be the same, wherever it was found."""
    return [told.prompt, told.tokens, told.completion, told.unknown, told.stopped]
