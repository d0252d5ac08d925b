"""A swarm's nouns are listed by its storage peers, some of which lie, refuse, or never end."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest

from giaann_p2p.client.session import Session
from giaann_p2p.errors import UsageError
from giaann_p2p.gateway.swarm_nouns import SwarmNouns
from giaann_p2p.gateway.views import Found
from giaann_p2p.net.clock import run
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.node.reading import noun_lists
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.member_messages import EditionIs
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import AskNouns, Nouns, Refusal, decode, doublings_of, encode

SHARDS = 2


def session(*peers: Callable[[AskNouns], Message]) -> Session:
    """Return a session with a swarm in which each of these peers serves every shard."""
    known = {Peer(bytes([number]) * 32): peer for number, peer in enumerate(peers)}

    async def call(peer: Peer, body: bytes, **_: float) -> bytes:
        question = decode(body)
        assert isinstance(question, AskNouns)
        return encode(known[peer](question))

    found = SimpleNamespace(
        around=SimpleNamespace(ready=lambda _shard, _now: list(known), rules=Rules(SHARDS)),
        place=SimpleNamespace(transport=SimpleNamespace(call=call)),
        gate=SimpleNamespace(hear=lambda answer: None),
        now=0.0,
    )
    return cast(Session, found)


def honest(question: AskNouns) -> Message:
    names = [f"bee{question.shard}", f"beer{question.shard}"]
    left = [name for name in names if name > question.after][:1]  # a noun a page
    return Nouns(left, [len(name) for name in left])


def silent(_question: AskNouns) -> Message:
    raise Unreachable("it is silent")


def refuses(_question: AskNouns) -> Message:
    return Refusal("no such message")


def disordered(_question: AskNouns) -> Message:
    return Nouns(["b", "a"], [1, 1])


def searched(*peers: Callable[[AskNouns], Message]) -> Found:
    async def main() -> Found:
        nouns = SwarmNouns()
        found = await nouns.search(session(*peers), "bee", 9)
        await nouns.close()
        return found

    return asyncio.run(main())


@pytest.fixture(autouse=True)
def one_page_is_a_noun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noun_lists, "MOST_NOUNS", 1)


@pytest.mark.parametrize("bad", [silent, refuses, disordered])
def test_all_shards_are_listed_by_whoever_answers(bad: Callable[[AskNouns], Message]) -> None:
    found = searched(bad, honest)
    assert [one.noun for one in found.found] == ["beer0", "beer1", "bee0", "bee1"]
    assert (found.of, found.note) == (4, "")


def test_a_search_says_what_it_lacks() -> None:
    found = searched(refuses, silent)
    assert found.found == []
    assert found.note.startswith(f"{SHARDS} of {SHARDS} shards could not be listed")


class Weather:
    """The peers of a swarm, all of which are honest or silent by turns."""

    def __init__(self) -> None:
        self.is_out, self.asked = False, 0
        self._nouns = SwarmNouns()
        self._session = session(self._answer)

    def _answer(self, question: AskNouns) -> Message:
        self.asked += 1
        return silent(question) if self.is_out else honest(question)

    async def found(self, after: float = 0.0) -> Found:
        """Return what is found some seconds later, once the list that a search begins is made."""
        await asyncio.sleep(after)
        await self._nouns.search(self._session, "bee", 9)
        await asyncio.sleep(0.1)
        return await self._nouns.search(self._session, "bee", 9)


def test_an_outage_leaves_what_was_listed_and_ends_with_the_next_list() -> None:
    async def main() -> None:
        peers = Weather()
        before = await peers.found()
        assert (before.of, before.note) == (4, "")
        peers.is_out = True
        during = await peers.found(after=61)  # the list is a minute old, so it is made anew
        assert during.found == before.found
        assert during.note.startswith(f"{SHARDS} of {SHARDS} shards could not be listed")
        peers.is_out = False
        assert await peers.found(after=3) == before

    run(main())


def test_a_swarm_that_was_out_from_the_start_is_listed_seconds_after_it_is_back() -> None:
    async def main() -> None:
        peers = Weather()
        peers.is_out = True
        assert (await peers.found()).of == 0
        peers.is_out = False
        found = await peers.found(after=3)
        assert (found.of, found.note) == (4, "")

    run(main())


def test_searches_during_an_outage_do_not_each_ask_all_peers() -> None:
    async def main() -> None:
        peers = Weather()
        peers.is_out = True
        for _ in range(20):  # in 2 s
            await peers.found()
        assert peers.asked <= 2 * SHARDS

    run(main())


def test_only_the_shards_that_are_lacking_are_asked_for_again() -> None:
    asked = list[int]()

    def half(question: AskNouns) -> Message:
        asked.append(question.shard)
        return silent(question) if question.shard else honest(question)

    async def main() -> None:
        nouns, around = SwarmNouns(), session(half)
        assert (await nouns.search(around, "bee", 9)).of == 2
        asked.clear()
        await asyncio.sleep(3)
        assert (await nouns.search(around, "bee", 9)).of == 2
        await asyncio.sleep(1)
        assert asked == [1]

    run(main())


class Doubling:
    """A swarm whose one peer lists the shards that it counts, which may double."""

    def __init__(self) -> None:
        self.doublings, self.out = 0, set[int]()
        self.session = session(honest)
        self.session.place.transport.call = self._call  # type: ignore[method-assign]

    @property
    def shards(self) -> int:
        return SHARDS << self.doublings

    def double(self) -> None:
        self.doublings += 1
        self.session.around.rules = Rules(self.shards, founding_shards=SHARDS)  # type: ignore[misc]

    async def _call(self, _peer: Peer, body: bytes, **_: float) -> bytes:
        await asyncio.sleep(0.01)
        question = decode(body)
        assert isinstance(question, AskNouns)
        if question.shard in self.out or doublings_of(body) != self.doublings:
            return encode(EditionIs(b"of another number of shards"))
        names = [name for name in ("bee", "beehive") if name > question.after]
        return encode(Nouns(names[:1], [question.shard + 1] * len(names[:1])))


def test_shards_are_listed_anew_when_their_number_has_doubled() -> None:
    async def main() -> None:
        swarm, nouns = Doubling(), SwarmNouns()

        async def found(after: float = 3.0) -> Found:
            await asyncio.sleep(after)
            await nouns.search(swarm.session, "bee", 99)
            await asyncio.sleep(1)
            return await nouns.search(swarm.session, "bee", 99)

        assert (await found()).of == 2 * SHARDS
        swarm.double()
        swarm.out = {*range(swarm.shards)}
        during = await found()
        assert during.of == 2 * SHARDS  # those that were listed before
        assert during.note.startswith(f"{2 * SHARDS} of {2 * SHARDS} shards could not be listed")
        swarm.out = {0}
        without = await found()
        assert without.of == 2 * (swarm.shards - 1)
        assert without.note.startswith(f"1 of {2 * SHARDS} shards could not be listed")
        swarm.out.clear()
        after = await found()
        assert (after.of, after.note) == (4 * SHARDS, "")
        await nouns.search(swarm.session, "bee", 9)
        swarm.double()
        swarm.double()
        assert ((await found()).of, (await found()).note) == (16 * SHARDS, "")

    run(main())


def test_shards_are_listed_at_once_as_a_peer_counts_them_that_knows_of_more() -> None:
    async def main() -> None:
        swarm, heard = Doubling(), list[Message]()
        swarm.doublings = 2  # which is news here

        def hear(answer: Message) -> None:
            if isinstance(answer, EditionIs):
                heard.append(answer)
                swarm.session.around.rules = Rules(  # type: ignore[misc]
                    swarm.shards, founding_shards=SHARDS
                )

        swarm.session.gate.hear = hear  # type: ignore[method-assign]
        found = await SwarmNouns().search(swarm.session, "bee", 99)
        assert (found.of, found.note) == (2 * 4 * SHARDS, "")
        assert heard

    run(main())


def test_a_session_that_ends_meanwhile_leaves_what_was_listed() -> None:
    def closed(_question: AskNouns) -> Message:
        raise UsageError("this transport is closed")

    async def main() -> None:
        nouns = SwarmNouns()
        assert (await nouns.search(session(honest), "bee", 9)).of == 4
        await asyncio.sleep(61)
        for _ in range(2):
            assert (await nouns.search(session(closed), "bee", 9)).of == 4
            await asyncio.sleep(1)
        assert (await nouns.search(session(closed), "bee", 9)).note

    run(main())


def test_a_list_without_an_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noun_lists, "_MOST", 20)
    asked = list[str]()

    def endless(question: AskNouns) -> Message:
        asked.append(question.after)
        return Nouns([f"bee{len(asked):09}"], [1])

    assert searched(endless).of == 20
    assert len(asked) == 20
