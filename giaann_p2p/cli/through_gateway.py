"""Lets commands use a gateway to their swarm that runs on this machine, instead of joining it.

Joining takes about a second and imports the network's code; asking a gateway takes a tenth of that.
If a gateway cannot serve a command, or refuses it, the command joins the swarm instead: `Away` is
raised before anything is printed.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast
from urllib.parse import quote

import msgspec
import typer

from giaann_p2p.errors import GiaannError
from giaann_p2p.gateway import whereabouts
from giaann_p2p.gateway.asking import OVERVIEW, Away, Event, asked, events, whole
from giaann_p2p.gateway.views import PeersNow, ShownColumn
from giaann_p2p.gateway.whereabouts import Whereabouts
from giaann_p2p.terminal import complain

if TYPE_CHECKING:
    from giaann_p2p.client.oracle import Oracle
    from giaann_p2p.model.manner import Manner
    from giaann_p2p.model.said import Generation
    from giaann_p2p.swarm.members.overview import Overview

NoGateway = Annotated[
    bool,
    typer.Option(
        "--no-gateway", help="Join the swarm even if a gateway to it runs on this machine."
    ),
]


class _Facts(msgspec.Struct):
    """The fields of the answer of `/api/info` that commands need."""

    name: str
    replicas: int


class ToldName(NamedTuple):
    """The neuron of a token, by name."""

    concept: str
    feature: str | None


class ToldToken(NamedTuple):
    """A token of an answer, as the gateway sends it."""

    text: str
    word: str
    name: ToldName
    timing: str
    score: float
    candidates: int
    probability: float | None


class ToldCost(NamedTuple):
    """The cost of a token, as the gateway sends it."""

    micros: int
    waited: int
    rows: int
    kept: int
    trips: int
    nbytes: int


class _Settled:
    """Stands for the row reader of a session that reads no rows, and so has no disputes."""

    in_dispute = 0

    async def settled(self, _seconds: float) -> bool:
        return True


class NoReads:
    """Replaces the session of a command whose prompts a gateway answers: it reads no rows."""

    def __init__(self) -> None:
        self.lies: list[Any] = []
        self.reading = _Settled()
        self.warned = False


class GatewayAnswer:
    """A gateway's answer to a prompt: iterate over it for its tokens, and close it at the end."""

    def __init__(self, where: Whereabouts, prompt: str, manner: "Manner", session: NoReads) -> None:
        self.prompt = prompt
        self.tokens: list[ToldToken] = []
        self.costs: list[ToldCost] = []
        self.completion, self.unknown, self.stopped = "", list[str](), ""
        self.begun: ToldCost | None = None
        self._session = session
        self._events = self._told(where, manner)

    @property
    def text(self) -> str:
        """The answer as text, to be appended to the prompt."""
        return self.completion + "".join(token.text for token in self.tokens)

    def __aiter__(self) -> AsyncIterator[ToldToken]:
        return self

    async def __anext__(self) -> ToldToken:
        return await anext(self._events)

    async def all(self) -> "Generation":
        """Wait for the rest of the answer, and return it; it has all fields of a `Generation`."""
        async for _ in self:
            pass
        return cast("Generation", self)

    async def aclose(self) -> None:
        """Close the connection to the gateway, which then abandons the answer."""
        await self._events.aclose()

    async def _told(self, where: Whereabouts, manner: "Manner") -> AsyncGenerator[ToldToken, None]:
        async with (
            asked(where, "/api/prompt", _body(self.prompt, manner)) as reply,
            aclosing(cast("AsyncGenerator[Event, None]", events(reply))) as news,
        ):
            async for name, data in news:
                if name == "begun":
                    self._begin(data)
                elif name == "token":
                    self.tokens.append(_token(data))
                    self.costs.append(_cost(data["cost"]))
                    yield self.tokens[-1]
                elif name == "done":
                    self.stopped = data["stopped"]
                elif name == "error":
                    raise GiaannError(data["message"])
        if not self.stopped:
            raise GiaannError("the gateway broke off in the middle of the answer")

    def _begin(self, data: dict[str, Any]) -> None:
        self.completion, self.unknown = data["completion"], data["unknown"]
        self.begun = None if data["cost"] is None else _cost(data["cost"])
        if not self._session.warned:
            self._session.warned = True
            warn(data.get("lost", ""))


class GatewayOracle:
    """Answers prompts through a gateway, as `Oracle` does through the swarm."""

    def __init__(self, where: Whereabouts) -> None:
        self._where = where
        self.visiting = NoReads()

    def __call__(self, prompt: str, manner: "Manner") -> GatewayAnswer:
        """Start to answer a prompt; return the answer to iterate over."""
        return GatewayAnswer(self._where, prompt, manner, self.visiting)


def oracle_at(where: Whereabouts) -> "Oracle":
    """Return a `GatewayOracle`, which has all that commands use of an `Oracle`."""
    return cast("Oracle", GatewayOracle(where))


def gateway_to(join: str, unwanted: bool = False) -> Whereabouts | None:
    """Return where the gateway to a link's swarm is; None if none runs here, or it is unwanted."""
    return None if unwanted else whereabouts.find(whereabouts.of_swarm(swarm_of(join)))


def swarm_of(join: str) -> bytes:
    """Return the id of a link's swarm."""
    from giaann_p2p.swarm.wire.link import Link

    return Link.read(join).swarm_id


async def answers(where: Whereabouts) -> bool:
    """Return whether a gateway can answer prompts now."""
    try:
        async with asked(where, "/readyz"):
            return True
    except Away:
        return False


async def overview_by(where: Whereabouts) -> "tuple[str, Overview]":
    """Return a swarm's name, and its overview, as a gateway sees it."""
    from giaann_p2p.swarm.members.overview import Overview

    async with asked(where, "/api/status", accept=OVERVIEW) as reply:
        if reply.headers.get("content-type") != OVERVIEW:
            raise Away("the gateway is of another release")
        try:
            return msgspec.msgpack.decode(await whole(reply), type=tuple[str, Overview])
        except msgspec.MsgspecError as error:
            raise Away(f"the gateway is of another release: {error}") from None


async def peers_by(where: Whereabouts) -> tuple[str, int, PeersNow]:
    """Return a swarm's name, how many replicas it wants, and its peers, as a gateway sees them."""
    async with asked(where, "/api/info") as info, asked(where, "/api/peers") as reply:
        try:
            facts = msgspec.json.decode(await whole(info), type=_Facts)
            peers = msgspec.json.decode(await whole(reply), type=PeersNow)
        except msgspec.MsgspecError as error:
            raise Away(f"the gateway is of another release: {error}") from None
    return facts.name, facts.replicas, peers


async def column_by(where: Whereabouts, noun: str, words: int, leads: int) -> ShownColumn:
    """Return a noun's column from a gateway; Away if it was never learned, or owners differ."""
    path = f"/api/columns/{quote(noun, safe='')}?words={words}&leads={leads}"
    async with asked(where, path) as reply:
        try:
            found = msgspec.json.decode(await whole(reply), type=ShownColumn)
        except msgspec.MsgspecError as error:
            raise Away(f"the gateway is of another release: {error}") from None
    if found.undecided:
        raise Away("owners differ, and it is not decided yet who is right")
    warn(reply.headers.get("x-giaann-lost", ""))
    return found


def warn(lost: str) -> None:
    """Warn of data that the swarm has lost, if any."""
    if lost:
        complain(
            f"the swarm has lost some of what it knew: {lost};"
            " `giaann status --join LINK` shows more"
        )


def _body(prompt: str, manner: "Manner") -> dict[str, Any]:
    sampling = msgspec.structs.asdict(manner.sampling)
    told = {"prompt": prompt, "max_tokens": manner.max_tokens, "timing": manner.timing}
    return told | sampling | msgspec.structs.asdict(manner.variant) | {"beam": manner.beam}


def _token(data: dict[str, Any]) -> ToldToken:
    name = ToldName(data["concept"], data["feature"])
    return ToldToken(
        text=data["text"],
        word=data["word"],
        name=name,
        timing=data["timing"],
        score=data["score"],
        candidates=data["candidates"],
        probability=data.get("probability"),
    )


def _cost(data: dict[str, Any]) -> ToldCost:
    micros, waited = (round(1000 * data[field]) for field in ("ms", "waited_ms"))
    counts = (data[field] for field in ("rows", "at_hand", "round_trips", "bytes"))
    return ToldCost(micros, waited, *counts)
