"""A gateway's readiness and its advice, as they follow from its session."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from types import SimpleNamespace
from typing import cast

import pytest

from giaann_p2p.client.session import Session
from giaann_p2p.errors import UsageError
from giaann_p2p.gateway import swarm_backend
from giaann_p2p.gateway.failures import Unavailable, failure_of
from giaann_p2p.gateway.held_session import HeldSession, Joins
from giaann_p2p.gateway.swarm_backend import SwarmBackend
from giaann_p2p.gateway.swarm_nouns import SwarmNouns
from giaann_p2p.gateway.views import Found, ShownColumn
from giaann_p2p.model.manner import MOST_BEAM, MOST_PROMPT, Beam, Manner
from giaann_p2p.net.clock import run
from giaann_p2p.sim.lessons import SPEC
from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.members.commands import Commands
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.link import Link
from tests.helpers_swarm import SHARDS
from tests.unit.gateway.raw import asked
from tests.unit.gateway.serving import Stub, served
from tests.unit.swarm.members.test_peers_view import NOW, ONE, TWO, Seeing, record

HANGS = 30.0
"""Seconds that no request may take, whatever is dead."""


def test_a_gateway_is_ready_when_both_kinds_of_peers_are_there() -> None:
    around = Seeing()
    session = SimpleNamespace(manifest=SimpleNamespace(), around=around, now=NOW)
    held = cast(HeldSession, SimpleNamespace(session=session))
    backend = SwarmBackend(held, training=False)
    assert backend.lacking == "no storage peer is in this swarm now"
    around.tell(record(TWO, role="compute", capacity=0, slots=1))
    assert backend.lacking == "no storage peer is in this swarm now"
    around.tell(record(ONE))
    assert backend.lacking == ""
    around.tell(record(TWO, 2, role="compute", capacity=0, slots=1, state="draining"))
    assert backend.lacking == "no compute peer is in this swarm now"


def test_the_replicas_that_are_shown_are_those_of_the_newest_edition() -> None:
    around = Seeing()
    manifest = SimpleNamespace(name="bees", spec=SPEC, layout=Layout(shards=SHARDS), replicas=2)
    held = SimpleNamespace(session=SimpleNamespace(manifest=manifest, around=around, now=NOW))
    backend = SwarmBackend(cast(HeldSession, held), training=False)
    assert backend.facts.replicas == 2
    around.rules_now = around.rules_now._replace(replicas=5, edition=1, shards=2 * SHARDS)
    assert (backend.facts.replicas, backend.facts.shards) == (5, 2 * SHARDS)


def test_what_to_advise_is_looked_up_once_and_not_for_each_prompt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    manifest = SimpleNamespace(swarm_id=b"bees")
    asked = list[bytes]()

    @asynccontextmanager
    async def visit(_link: Link) -> AsyncIterator[Session]:
        directory = SimpleNamespace(live=lambda _now: [SimpleNamespace(peer=ONE)])
        around, lookout = SimpleNamespace(directory=directory), SimpleNamespace(is_blind=False)
        told = SimpleNamespace(manifest=manifest, around=around, lookout=lookout, now=NOW)
        yield cast(Session, told)

    def commands(swarm_id: bytes) -> Commands:
        asked.append(swarm_id)
        return Commands(" --dir bees")

    async def play() -> None:
        link = cast(Link, SimpleNamespace())
        async with swarm_backend.swarm_backend(link, commands) as backend:
            for _ in range(3):
                assert backend.session.commands == Commands(" --dir bees")
        assert asked == [b"bees"]

    monkeypatch.setattr(swarm_backend, "visit", visit)
    asyncio.run(play())


def test_a_killed_peer_is_not_waited_for_because_the_next_look_is_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def silent(*_: object, soon: bool) -> frozenset[Peer]:
        return frozenset({TWO.peer} if soon else ())

    async def play() -> None:
        around = Seeing()
        around.tell(record(TWO))
        session = SimpleNamespace(
            manifest=SimpleNamespace(),
            around=around,
            now=NOW,
            place=SimpleNamespace(transport=None),
            overview=lambda quiet: quiet,
        )
        held = SimpleNamespace(session=session, using=lambda: nullcontext(session))
        backend = SwarmBackend(cast(HeldSession, held), training=False)
        assert await backend.overview() == {TWO.peer}

    monkeypatch.setattr(swarm_backend, "silent", silent)
    asyncio.run(play())


def test_a_prompt_that_the_end_of_its_session_cuts_off_may_be_sent_again() -> None:
    async def play() -> None:
        held = HeldSession(cast(Joins, None))
        held._session = cast(Session, SimpleNamespace(manifest=SimpleNamespace(spec=SPEC)))
        backend = SwarmBackend(held, training=False)

        async def ask() -> None:
            async with backend.answering("Bees", Manner()):
                held._session = None
                raise UsageError("this transport is closed")

        with pytest.raises(Unavailable, match="session has ended"):
            await ask()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(swarm_backend, "ask", lambda *_: None)
        patch.setattr(SwarmBackend, "_room", lambda _: 1)
        asyncio.run(play())


@pytest.mark.parametrize(
    ("prompt", "manner"),
    [
        ("a" * (MOST_PROMPT + 1), Manner()),
        ("Bees", Manner(beam=Beam(width=MOST_BEAM + 1, depth=1))),
    ],
    ids=["prompt", "beam"],
)
def test_a_prompt_that_is_too_large_is_refused_without_a_turn(prompt: str, manner: Manner) -> None:
    async def play() -> None:
        backend = deaf()  # it has room for none, so a prompt that takes a turn waits for one
        with pytest.raises(UsageError, match="this gateway takes at most") as found:
            async with asyncio.timeout(HANGS), backend.answering(prompt, manner):
                pass
        assert failure_of(found.value).status == 400

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SwarmBackend, "_room", lambda _: 0)
        run(play())


def deaf() -> SwarmBackend:
    """Return a backend of a swarm that never answers; `never` is what it does instead."""
    session = SimpleNamespace(manifest=SimpleNamespace(spec=SPEC), lies=[])
    held = SimpleNamespace(session=session, using=lambda: nullcontext(session))
    return SwarmBackend(cast(HeldSession, held), training=False)


@pytest.fixture
def _never(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(swarm_backend, "column", never)
    monkeypatch.setattr(SwarmNouns, "search", never)


@pytest.mark.usefixtures("_never")
@pytest.mark.parametrize("what", ["column", "search"])
def test_a_swarm_that_never_answers_is_given_up(what: str) -> None:
    async def play() -> None:
        backend, clock = deaf(), asyncio.get_running_loop().time
        began = clock()
        with pytest.raises(Unavailable, match="has not answered for 25 s; try again"):
            async with asyncio.timeout(HANGS):
                await (backend.column("bee", 1, 1) if what == "column" else backend.search("b", 1))
        assert clock() - began == 25.0

    run(play())


@pytest.mark.usefixtures("_never")
@pytest.mark.parametrize("path", ["/api/columns/bee", "/api/search?q=b"])
def test_a_client_of_a_swarm_that_never_answers_is_told_to_come_again(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Deaf(Stub):
        async def column(self, noun: str, words: int, leads: int) -> ShownColumn | None:
            return await deaf().column(noun, words, leads)

        async def search(self, prefix: str, most: int) -> Found:
            return await deaf().search(prefix, most)

    monkeypatch.setattr(swarm_backend, "_SHOWN_WITHIN", 0.1)
    with served(Deaf) as found:
        status, data = asked(found.port, "GET", path)
    assert status == 503
    assert b"has not answered for 0.1 s" in data
    assert b"retry-after: 2" in data
