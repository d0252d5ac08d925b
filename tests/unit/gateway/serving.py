"""A gateway for tests: the real server on a loopback port, in a thread of its own."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NamedTuple, TypeVar

from giaann_p2p.client.prompting import Answer
from giaann_p2p.errors import PromptError
from giaann_p2p.gateway.app import Gateway, gateway
from giaann_p2p.gateway.backend import Backend, Facts, Learned, Progress, Teaching
from giaann_p2p.gateway.context import context_of
from giaann_p2p.gateway.failures import Unavailable
from giaann_p2p.gateway.limits import Limits
from giaann_p2p.gateway.noun_index import NounIndex
from giaann_p2p.gateway.rules import Access
from giaann_p2p.gateway.server import Server, bound
from giaann_p2p.gateway.views import Found, Jobs, PeersNow, ShownColumn, ShownJob, ShownWord
from giaann_p2p.model.manner import Manner, require
from giaann_p2p.model.rows import Name
from giaann_p2p.model.said import AnyToken, Stopped, Token
from giaann_p2p.model.subwords.basis import Basis
from giaann_p2p.model.subwords.said import Rival, SubwordToken
from giaann_p2p.model.tier import Tier
from giaann_p2p.model.traits import traits_of
from giaann_p2p.swarm.wire.prompt_messages import Cost

_T = TypeVar("_T")
WITHIN = 60.0
"""Only for what hangs."""


class Script(Answer):
    """An answer that counts: ` 1 2 3`; it can be held at a token."""

    def __init__(self, prompt: str, manner: Manner, stub: "Stub") -> None:
        super().__init__(prompt)
        self._manner, self._stub = manner, stub
        self._stopped: Stopped | None = None

    completion = ""

    @property
    def unknown(self) -> list[str]:
        return ["zorp"] if "zorp" in self.prompt else []

    @property
    def stopped(self) -> Stopped | None:
        return self._stopped

    @property
    def is_ahead(self) -> bool:
        return len(self.tokens) % self._stub.together > 0

    @property
    def begun(self) -> Cost | None:
        return Cost(micros=5)

    async def _next(self) -> tuple[AnyToken, Cost] | None:
        stub, at = self._stub, len(self.tokens)
        if at == stub.held_at:
            stub.holding.set()
            await stub.go.wait()
        if stub.fault is not None and at >= stub.fault_at:
            raise stub.fault
        if at >= min(stub.length, self._manner.max_tokens):
            self._stopped = "limit" if at >= self._manner.max_tokens else "end"
            return None
        word = f"{at + 1}"
        if stub.profile == "words":
            name = Name("number", word)
            return Token(f" {word}", word, name, Tier.EXACT, 1.0, 3, 0.5), Cost(micros=7)
        shown = f" {word}"
        rivals = (Rival(shown, 0.5), Rival(" bees", 0.25))[: self._manner.sampling.rivals]
        said = SubwordToken(shown, shown, Name(shown, None), Basis.RECALL, -0.5, 3, 0.5, rivals)
        return said, Cost(micros=7)


class Stub:
    """A backend whose every answer counts, and which knows how many are going on."""

    def __init__(self, profile: str = "words", *, training: bool = False) -> None:
        self.profile, self.training = profile, training
        self.length, self.now, self.most = 3, 0, 0
        self.together = 1  # tokens come so many at a time
        self.full, self.full_at = asyncio.Event(), 50
        self.manners: list[Manner] = []
        self.held_at = self.fault_at = -1
        self.holding, self.go, self.over = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.fault: BaseException | None = None
        self.away = ""
        self.verdict = "healthy"
        self.lost = ""

    @property
    def facts(self) -> Facts:
        return Facts(
            kind="swarm",
            name="bees",
            profile=self.profile,
            model="bees",
            version="1",
            training=self.training,
            shards=4,
            replicas=1,
        )

    @property
    def lacking(self) -> str:
        return self.away

    @asynccontextmanager
    async def answering(self, prompt: str, manner: Manner) -> AsyncIterator[Answer]:
        require(manner, self.profile)
        if self.away:
            raise Unavailable(self.away)
        if prompt == "nothing":
            raise PromptError("a prompt needs a noun")
        self.manners.append(manner)
        self.now += 1
        self.most = max(self.most, self.now)
        if self.now == self.full_at:
            self.full.set()
        try:
            yield Script(prompt, manner, self)
        finally:
            self.now -= 1
            self.over.set()

    async def overview(self) -> None:
        return None

    async def status(self) -> dict[str, Any]:
        return {"verdict": self.verdict, "do": "", "now": self.now}

    async def peers(self) -> PeersNow:
        return PeersNow()

    async def column(self, noun: str, words: int, leads: int) -> ShownColumn | None:
        if noun != "civil war":
            return None
        word = ShownWord(feature=None, occurrences=words, connections=leads, leads=[])
        return ShownColumn(concept="civil_war", size=1, words=[word])

    async def search(self, prefix: str, most: int) -> Found:
        return NounIndex([("bee", 5), ("beer", 9), ("ant", 1)]).search(prefix, most)

    async def jobs(self) -> Jobs:
        return Jobs(jobs=[ShownJob(id="1", name="a text", chunks=2, of=2)])

    async def train(self, name: str, text: str) -> Teaching:
        yield Progress(name=name, done=1, of=2, share=0.5, rate=8.0)
        yield Learned(report={"name": name, "letters": len(text)})


class Served(NamedTuple):
    """A gateway that runs in a thread."""

    url: str
    port: int
    backend: Any
    gateway: Gateway
    server: Server
    loop: asyncio.AbstractEventLoop

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine in the gateway's loop, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(WITHIN)

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.server.stop)


@contextmanager
def served(
    make: Callable[[], Any] = Stub, access: Access | None = None, limits: Limits | None = None
) -> Iterator[Served]:
    """Serve a backend, made in the loop of the server, and end the server at last."""
    ready, found = threading.Event(), list[Served]()
    errors = list[BaseException]()

    async def serve() -> None:
        backend: Backend = make()
        door = bound("127.0.0.1", 0)
        port = door.getsockname()[1]
        context = context_of(
            backend, limits or Limits(drain_seconds=1.0), traits_of(backend.facts.profile).counter()
        )
        app = gateway(context, access or Access())
        server = Server(app)
        serving = asyncio.ensure_future(server.serve(sockets=[door]))
        began = asyncio.ensure_future(server.ready.wait())
        await asyncio.wait([serving, began], return_when=asyncio.FIRST_COMPLETED)
        loop = asyncio.get_running_loop()
        found.append(Served(f"http://127.0.0.1:{port}", port, backend, app, server, loop))
        ready.set()
        await serving

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:  # noqa: BLE001  (the test raises it)
            errors.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(WITHIN)
    if errors:
        raise errors[0]
    try:
        yield found[0]
    finally:
        if thread.is_alive():
            found[0].stop()
        thread.join(WITHIN)
        assert not thread.is_alive()
        assert not errors, errors
