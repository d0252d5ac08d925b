"""Bringing a brain into a swarm: once, whatever happens on the way."""

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from giaann_p2p.client import publishing
from giaann_p2p.client.publishing import Published, publish
from giaann_p2p.client.session import Session
from giaann_p2p.errors import NotAdmitted, UsageError
from giaann_p2p.model.delta import total
from giaann_p2p.model.digest import digest
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.node.calls import Calls
from giaann_p2p.sim.lessons import SPEC
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.store.cut_columns import cut_columns
from giaann_p2p.store.cuts import Cut
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from giaann_p2p.swarm.wire.admission import Admission
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.messages import Refusal, encode
from tests.unit.node.helpers import (
    LAYOUT,
    LESSONS,
    MANIFEST,
    Client,
    Town,
    identity,
    lesson,
    play,
    taught,
)

CHUNKS = range(6)
FOUNDER = identity(1)


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut a brain into chunks that are far smaller than what owners take."""
    few = Limits(SPEC.branches, SPEC.segments, 40, 30)
    monkeypatch.setattr(publishing, "of_push", lambda *_: few)


def brain(layout: Layout = LAYOUT) -> Store:
    """Return a brain that has learned some chunks."""
    store = Store.in_memory(SPEC, layout)
    store.hold(range(layout.shards))
    store.apply([lesson(chunk, store.limits) for chunk in CHUNKS])
    return store


def visiting(client: Client, manifest: Manifest = MANIFEST) -> Session:
    async def join_dht() -> None:
        await client.lookout.whole.wait()

    host = SimpleNamespace(identity=identity(200), me=client.me)
    session = SimpleNamespace(
        manifest=manifest,
        place=SimpleNamespace(transport=client.transport, host=host, token=b""),
        around=client.lookout.view,
        clock=client.clock,
        now=0.0,
        gate=SimpleNamespace(admission=Admission(manifest)),
        join_dht=join_dht,
        calls=partial(Calls, client.transport, lambda: client.lookout.view.rules),
    )
    return cast(Session, session)


async def begun(town: Town) -> Client:
    for _ in range(3):
        town.add()
    client = Client(town)
    await town.until(town.settled)
    await asyncio.sleep(15)
    return client


def has_it(town: Town) -> bool:
    """Tell whether each replica has what the brain has, and no more."""
    wanted = taught(CHUNKS)
    found = town.digests()
    return all(one == {shard: wanted[shard] for shard in one} for one in found)


def test_a_brain_counts_once(small_chunks: None) -> None:
    async def story(town: Town) -> None:
        client = await begun(town)
        first = await publish(visiting(client), brain())
        assert first.pushed == first.chunks > 10
        await town.until(lambda: has_it(town))
        again = await publish(visiting(client), brain())
        assert again == first._replace(pushed=0)
        assert has_it(town)

    play(story)


def test_a_brain_that_has_grown_is_not_counted_twice_unless_wanted() -> None:
    async def story(town: Town) -> None:
        client, grown = await begun(town), brain()
        first = await publish(visiting(client), grown)
        assert await publish(visiting(client), grown) == first._replace(pushed=0)
        grown.apply([lesson(len(CHUNKS), grown.limits)])
        with pytest.raises(UsageError, match=f"an earlier state .* as job {first.job}; train"):
            await publish(visiting(client), grown)
        await town.until(lambda: has_it(town))
        second = await publish(visiting(client), grown, anyway=True)
        assert second.pushed == second.chunks
        again = await publish(visiting(client), grown, anyway=True)
        assert again == second._replace(pushed=0)

    play(story)


def test_what_was_interrupted_goes_on(small_chunks: None) -> None:
    async def story(town: Town) -> None:
        client = await begun(town)
        done = asyncio.Event()

        def progress(count: int, total: int) -> None:
            if 0 < count < total:
                done.set()

        task = asyncio.create_task(publish(visiting(client), brain(), progress=progress))
        await done.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.sleep(20)
        rest: Published = await publish(visiting(client), brain())
        assert 0 < rest.pushed < rest.chunks
        await town.until(lambda: has_it(town))

    play(story)


def test_what_the_swarm_has_learned_is_not_counted_twice_unless_wanted() -> None:
    async def story(town: Town) -> None:
        client = await begun(town)
        await client.push(0)
        with pytest.raises(UsageError, match="has learned 1 of the brain's 1 texts already"):
            await publish(visiting(client), brain())
        assert town.holds_what([0])
        found = await publish(visiting(client), brain(), anyway=True)
        assert found.pushed == found.chunks

    play(story)


def test_a_text_that_only_one_shard_of_the_brain_has_is_not_counted_twice() -> None:
    async def story(town: Town) -> None:
        client = await begun(town)
        await client.push(0)
        one = Store.in_memory(SPEC, LAYOUT)
        one.hold(range(LAYOUT.shards))
        one.adopt(brain().content(LAYOUT.shards - 1))  # an interrupted pull leaves a brain so
        with pytest.raises(UsageError, match="has learned 1 of the brain's 1 texts already"):
            await publish(visiting(client), one)

    play(story)


def test_texts_may_be_shared_unseen_where_chunks_have_other_sizes(small_chunks: None) -> None:
    async def story(town: Town) -> None:
        client = await begun(town)
        one = brain(msgspec.structs.replace(LAYOUT, sentences=2 * LAYOUT.chunk))
        with pytest.raises(
            UsageError, match="in chunks of 128 sentences, the swarm in chunks of 64"
        ):
            await publish(visiting(client), one)
        first = await publish(visiting(client), one, anyway=True)
        again = await publish(visiting(client), one)  # that was insisted on before
        assert again == first._replace(pushed=0)

    play(story)


def test_owners_that_are_silent() -> None:
    async def story(town: Town) -> None:
        client = await begun(town)
        for house in town.houses:
            town.freeze(house)
        with pytest.raises(Unreachable, match="no owner has answered for 60 s"):
            await publish(visiting(client), brain())
        for house in town.houses:
            town.freeze(house, frozen=False)

    play(story)


def test_owners_that_refuse_for_ever() -> None:
    async def story(town: Town) -> None:
        client = await begun(town)
        for house in town.houses:
            house.transport.serve(refusing)
        with pytest.raises(Unreachable, match=r"for 60 s except to refuse \(it is full\)"):
            await publish(visiting(client), brain())

    async def refusing(peer: bytes, body: bytes) -> bytes:
        return encode(Refusal("it is full"))

    play(story)


@pytest.mark.parametrize(
    ("changes", "error", "why"),
    [
        ({"spec": ModelSpec()}, UsageError, "seed_tokens: 4 and 12"),
        ({"redundancy": 2}, UsageError, "cannot learn a brain"),
        ({"admission": "token"}, NotAdmitted, "with the right to compute"),
    ],
)
def test_a_swarm_that_cannot_take_it(
    changes: dict[str, object], error: type[Exception], why: str
) -> None:
    wanted: dict[str, object] = {"spec": SPEC, "layout": LAYOUT} | changes
    manifest = Manifest.founded(FOUNDER, "other", **wanted)  # type: ignore[arg-type]

    async def story(town: Town) -> None:
        with pytest.raises(error, match=why):
            await publish(visiting(Client(town), manifest), brain())

    play(story)


def test_lessons_are_of_several_rows() -> None:
    assert LESSONS.delta(0).neurons > 10


def test_a_brain_is_cut_as_the_swarm_is() -> None:
    columns = cut_columns((Cut("noun1", 4), Cut("noun2", 8)))
    other = Layout(shards=16, cuts=(Cut("noun2", 2), Cut("noun3", 4)))
    store, learned = Store.in_memory(SPEC, other), total([LESSONS.delta(n) for n in CHUNKS])
    store.hold(range(16))
    store.apply([Update(b"j" * 16, 0, store.shards, other.columns.cut(learned))])
    assert digest(store.content(*range(16)).delta) != digest(learned)
    for layout in (Layout(cuts=columns.cuts), other, Layout()):
        told = publishing._knowledge(store, layout)
        assert digest(told) == digest(layout.columns.cut(learned))
        assert told.names == layout.columns.cut(learned).names
