"""A gateway finds out what a whole swarm has learned, and who signed it."""

import asyncio
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from giaann_p2p.client import learned
from giaann_p2p.client.learned import Chunk, RefusedError, agreed, chunks_by_owner, signed_by
from giaann_p2p.client.session import Session
from giaann_p2p.errors import MessageError
from giaann_p2p.gateway.authors import Authors
from giaann_p2p.gateway.job_rates import WINDOW, JobRates
from giaann_p2p.gateway.swarm_jobs import SwarmJobs
from giaann_p2p.gateway.views import Contributor, Jobs, ShownJob
from giaann_p2p.store.applied import WITHDRAWN, Applied
from giaann_p2p.swarm.wire.admission import Admission
from giaann_p2p.swarm.wire.identity import Peer, name_of
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.member_messages import EditionIs
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Fetch, Fetched, Refusal, decode, doublings_of, encode
from giaann_p2p.swarm.wire.shardset import packed
from tests.unit.node.helpers import JOB, LAYOUT, MANIFEST, Client, Town, identity, play

OTHER = b"another test job"
ONE, TWO = 200, 201
SHARD = packed(np.array([0], np.uint16), LAYOUT.shards)


def session_of(client: Client) -> Session:
    """Return what a client sees, as a session."""
    found = SimpleNamespace(
        manifest=MANIFEST,
        around=client.lookout.view,
        place=SimpleNamespace(transport=client.transport),
        gate=SimpleNamespace(admission=Admission(MANIFEST), hear=lambda answer: None),
        now=client.clock(),
    )
    return cast(Session, found)


def applied(job: bytes, *chunks: int) -> Applied:
    found = Applied()
    for chunk in chunks:
        found = found.plus(job, chunk)
    return found


async def taught(town: Town) -> Client:
    """Have a town learn chunks 1 and 3 of one peer, and chunk 2 of another; return who asks."""
    for _ in range(3):
        town.add()
    one, two = Client(town, ONE), Client(town, TWO)
    await town.until(town.settled)
    await one.push_all([1, 3])
    await two.push(2)
    asker = Client(town, 202)
    await asker.lookout.whole.wait()
    return asker


async def seen(jobs: SwarmJobs, client: Client) -> Jobs:
    """Return what is known after a look that is to come."""
    await asyncio.sleep(2.5)
    await jobs.look(session_of(client))
    await asyncio.sleep(2.0)
    return jobs.jobs({})


def test_jobs_of_others_and_their_authors_are_known() -> None:
    async def story(town: Town) -> None:
        asker, jobs = await taught(town), SwarmJobs()
        found = await seen(jobs, asker)
        (job,) = found.jobs
        assert (job.id, job.chunks, job.of, job.mine) == (JOB.hex(), 3, None, False)
        assert (job.author, job.authors, job.rate) == (None, 2, 0.0)
        assert found.contributors == [
            Contributor(author=name_of(identity(ONE).peer), chunks=2, sentences=None, texts=1),
            Contributor(author=name_of(identity(TWO).peer), chunks=1, sentences=None, texts=1),
        ]
        assert found.note == ""
        await town.clients[0].push(4)
        found = await seen(jobs, asker)
        assert found.jobs[0].chunks == 4
        assert found.jobs[0].rate > 0
        assert found.contributors[0].chunks == 3
        await jobs.close()

    play(story)


def test_the_jobs_of_this_gateway_keep_their_names() -> None:
    async def story(town: Town) -> None:
        asker, jobs = await taught(town), SwarmJobs()
        await seen(jobs, asker)
        own = {
            JOB: ShownJob(id=JOB.hex(), name="bees", chunks=1, of=9, mine=True),
            OTHER: ShownJob(id=OTHER.hex(), name="new", chunks=0, of=None, mine=True),
        }
        one, two = jobs.jobs(own).jobs
        assert (one.name, one.chunks, one.of, one.authors) == ("bees", 3, 9, 2)
        assert (two.name, two.chunks, two.authors) == ("new", 0, 0)
        await jobs.close()

    play(story)


def test_what_is_forgotten_counts_for_nobody_and_is_told() -> None:
    async def story(town: Town) -> None:
        asker, jobs = await taught(town), SwarmJobs()
        await town.until(lambda: not any(house.store.kept() for house in town.alive))
        found = await seen(jobs, asker)
        assert (found.jobs[0].chunks, found.jobs[0].authors) == (3, 0)
        assert found.contributors == []
        assert found.note == "the authors of 3 chunks are no longer known"
        await jobs.close()

    play(story)


def test_without_a_quorum_nothing_is_told() -> None:
    async def story(town: Town) -> None:
        asker, jobs = await taught(town), SwarmJobs()
        for house in town.houses[:2]:
            town.freeze(house)
        found = await seen(jobs, asker)
        await asyncio.sleep(learned._WITHIN)
        found = jobs.jobs({})
        assert found.jobs == []
        assert found.note == "too few owners answer to say what others taught"
        await jobs.close()
        for house in town.houses[:2]:
            town.freeze(house, frozen=False)

    play(story)


class Owner(Client):
    """Somebody who answers a request for deltas as a test says."""

    def __init__(self, town: Town, answer: Message) -> None:
        super().__init__(town, 210)

        async def handler(peer: bytes, body: bytes) -> bytes:
            assert isinstance(decode(body), Fetch)
            return encode(answer)

        self.transport.serve(handler)


def asked(answer: Message, wanted: Applied) -> dict[Chunk, list[Peer]]:
    """Return the authors that an owner with this answer tells, and that are believed."""
    found: dict[Chunk, list[Peer]] = {}

    async def story(town: Town) -> None:
        owner, asker = Owner(town, answer), Client(town)
        found.update((await signed_by(session_of(asker), owner.me, 0, wanted)).authors)

    play(story)
    return found


def pieces(*chunks: int) -> Fetched:
    """Return the answer of an owner of shard 0 that has learned some chunks."""
    found: list[Fetched] = []

    async def story(town: Town) -> None:
        asker = await taught(town)
        (peer, *_) = asker.lookout.view.ready(0, asker.clock())
        body = encode(Fetch(SHARD, applied(JOB, *chunks).to_bytes(), remembered=True))
        answer = decode(await asker.transport.call(peer, body, timeout=5.0))
        assert isinstance(answer, Fetched), answer
        found.append(answer)

    play(story)
    return found[0]


def test_an_author_that_did_not_sign_is_not_believed() -> None:
    answer = pieces(1, 2)
    one, two = sorted(answer.updates, key=lambda piece: piece.chunk)
    wanted = applied(JOB, 1, 2)
    assert asked(answer, wanted) == {
        (JOB, 1): [identity(ONE).peer],
        (JOB, 2): [identity(TWO).peer],
    }
    for lie in (
        type(one)(JOB, 2, one.shards, one.parcel, one.seal),  # chunk 1 under another number
        type(one)(JOB, 1, one.shards, one.parcel, two.seal),
        type(one)(JOB, 1, one.shards, one.parcel[:-3], one.seal),
    ):
        with pytest.raises(MessageError):
            asked(Fetched([lie], answer.gone), wanted)
    with pytest.raises(MessageError, match="not requested"):
        asked(answer, applied(JOB, 1))


def test_owners_are_asked_in_the_layout_of_the_newest_edition() -> None:
    asked = list[int]()

    async def story(town: Town) -> None:
        owner, asker = Client(town, 210), Client(town)

        async def handler(peer: bytes, body: bytes) -> bytes:
            asked.append(doublings_of(body))
            return encode(EditionIs(b"of another number of shards"))

        owner.transport.serve(handler)
        session = session_of(asker)
        session.around = SimpleNamespace(  # type: ignore[assignment]
            rules=Rules(8 * LAYOUT.shards, founding_shards=LAYOUT.shards),
            ready=lambda shard, now: [owner.me],
        )
        with pytest.raises(MessageError, match="the answer does not contain deltas"):
            await signed_by(session, owner.me, 0, applied(JOB, 1))
        assert await chunks_by_owner(session, 0, {}) == {}

    play(story)
    assert asked == [3, 3]


def test_who_may_not_ask_is_told_apart_from_who_should_ask_again() -> None:
    with pytest.raises(RefusedError, match="your token"):
        asked(Refusal("your token grants only client"), applied(JOB, 1))
    with pytest.raises(MessageError, match="the answer does not contain deltas"):
        asked(Refusal("busy: later"), applied(JOB, 1))


def test_a_chunk_counts_if_a_quorum_reports_it_and_it_is_not_withdrawn() -> None:
    told = [applied(JOB, 1, 2, 3), applied(JOB, 2, 3), applied(JOB, 3, 9)]
    assert agreed(told, 1) == applied(JOB, 1, 2, 3, 9)
    assert agreed(told, 2) == applied(JOB, 2, 3)
    assert agreed(told, 3) == applied(JOB, 3)
    assert not agreed(told[:1], 2)
    back = [one.plus(JOB, 3 | WITHDRAWN) for one in told]
    assert agreed(back, 2) == applied(JOB, 2)


def test_authors_count_for_chunks_that_are_still_there() -> None:
    authors, one, two = Authors(), Peer(b"1" * 32), Peer(b"2" * 32)
    chunks = applied(JOB, 1, 2, 3)
    assert authors.unsettled(chunks) == chunks
    authors.settle({(JOB, 1): [one, two], (JOB, 2): [one]})
    assert authors.unsettled(chunks) == applied(JOB, 3)
    authors.give_up(applied(JOB, 3))
    assert not authors.unsettled(chunks)
    assert (authors.unknown(chunks), authors.unknown(applied(JOB, 1))) == (1, 0)
    assert authors.of(JOB, chunks) == {one: 2, two: 1}
    assert authors.of(JOB, applied(JOB, 2)) == {one: 1}
    assert authors.of(OTHER, chunks) == {}


def test_a_rate_is_what_a_job_gained_in_the_window() -> None:
    rates = JobRates()
    assert rates.rate(JOB) == 0
    rates.look({JOB: 500}, 100.0)
    assert rates.rate(JOB) == 0  # nobody knows when these were learned
    rates.look({JOB: 520, OTHER: 5}, 110.0)
    assert (rates.rate(JOB), rates.rate(OTHER)) == (2.0, 0.5)
    rates.look({JOB: 550, OTHER: 5}, 130.0)
    assert rates.rate(JOB) == 50 / WINDOW
    rates.look({JOB: 550, OTHER: 5}, 141.0)
    assert (rates.rate(JOB), rates.rate(OTHER)) == (30 / WINDOW, 0.0)
    rates.look({JOB: 550}, 200.0)
    assert rates.rate(JOB) == 0
