"""The most frequent nouns of a swarm, from peers some of which are silent or lie."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest

from giaann_p2p.net.clock import run
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.net.transport import Transport
from giaann_p2p.node.reading import noun_lists
from giaann_p2p.node.reading.noun_lists import FrequentNouns
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.member_messages import EditionIs
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import AskNouns, Nouns, decode, doublings_of, encode

NOUNS = [{"bee": 5, "wasp": 1, "honey": 3}, {"queen": 4, "sting": 3}]
"""By shard."""
SHARDS = len(NOUNS)


def honest(question: AskNouns) -> Message:
    known = sorted(NOUNS[question.shard].items(), key=lambda noun: (-noun[1], noun[0]))
    best = dict(sorted(known[: question.frequent]))
    return Nouns(list(best), list(best.values()))


def silent(_question: AskNouns) -> Message:
    raise Unreachable("it is silent")


def disordered(_question: AskNouns) -> Message:
    return Nouns(["b", "a"], [9, 9])


def excessive(_question: AskNouns) -> Message:
    return Nouns(["a", "b", "c", "d"], [9, 9, 9, 9])


class Swarm:
    """Peers of which each serves every shard, and a peer that asks them."""

    def __init__(self, *peers: Callable[[AskNouns], Message]) -> None:
        self._known = {Peer(bytes([number]) * 32): peer for number, peer in enumerate(peers)}
        self.asked = 0
        self.transport = SimpleNamespace(call=self._call)
        self.others = SimpleNamespace(
            ready=lambda _shard, _now: list(self._known),
            not_suspected=lambda _peer, _now: True,
            rules=Rules(SHARDS),
        )
        self.nouns = FrequentNouns(
            cast(Transport, self.transport),
            cast(PeersView, self.others),
            lambda: 0.0,
            self._heard,
        )
        self.newer: Rules | None = None
        """By the edition that peers send, if any."""

    def _heard(self, answer: Message) -> None:
        if isinstance(answer, EditionIs) and self.newer:
            self.others.rules = self.newer

    async def _call(self, peer: Peer, body: bytes, *, timeout: float) -> bytes:  # noqa: ASYNC109
        question = decode(body)
        assert isinstance(question, AskNouns)
        self.asked += 1
        if self._known[peer] is silent:
            await asyncio.sleep(timeout)
        return encode(self._known[peer](question))

    async def most(self, number: int) -> list[tuple[str, int]]:
        found = await self.nouns.most(number)
        return [(row.name.concept, row.count) for row in found if row is not None]


@pytest.mark.parametrize("bad", [silent, disordered, excessive])
def test_they_are_of_all_shards_from_whoever_lists_them(
    bad: Callable[[AskNouns], Message],
) -> None:
    found = run(Swarm(bad, honest).most(3))
    assert found == [("bee", 5), ("queen", 4), ("honey", 3)]


def test_they_are_listed_anew_if_the_shards_double_meanwhile() -> None:
    """No peer lists former shards then, and each shard has only some nouns of its parent."""
    swarm, counted, refused = Swarm(honest), 0, 0
    listed = list[tuple[int, int]]()

    async def call(_peer: Peer, body: bytes, *, timeout: float) -> bytes:  # noqa: ASYNC109
        nonlocal counted, refused
        question = decode(body)
        assert isinstance(question, AskNouns)
        if question.shard == 1 and not counted:  # the first is listed, then the shards double
            counted = 1
            swarm.others.rules = Rules(2 * SHARDS, founding_shards=SHARDS)
        if doublings_of(body) != counted:
            refused += 1
            return encode(EditionIs(b"of another number of shards"))
        listed.append((doublings_of(body), question.shard))
        return encode(Nouns([f"bee{question.shard}"], [9 - question.shard]))

    swarm.transport.call = call
    found = run(swarm.most(9))
    assert found == [("bee0", 9), ("bee1", 8), ("bee2", 7), ("bee3", 6)]
    assert sorted(listed) == [(0, 0), (1, 0), (1, 1), (1, 2), (1, 3)]
    assert refused == 1


def test_they_are_listed_at_once_as_a_peer_counts_shards_that_knows_of_more() -> None:
    shards, swarm, refused = 64, Swarm(honest), 0
    swarm.others.rules = Rules(shards)

    async def call(_peer: Peer, body: bytes, *, timeout: float) -> bytes:  # noqa: ASYNC109
        nonlocal refused
        await asyncio.sleep(0.01)
        if not doublings_of(body):
            refused += 1
            return encode(EditionIs(b"of another number of shards"))
        return encode(Nouns(["bee"], [1]))

    async def main() -> None:
        begun = asyncio.get_running_loop().time()
        assert await swarm.most(9) == [("bee", 1)]
        assert asyncio.get_running_loop().time() - begun < noun_lists._AGAIN  # by a virtual clock

    swarm.transport.call, swarm.newer = call, Rules(2 * shards, founding_shards=shards)
    run(main())
    assert refused == noun_lists._AT_ONCE


def test_they_are_asked_for_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> list[int]:
        swarm, asked = Swarm(honest), []
        for fresh in (noun_lists._FRESH, noun_lists._FRESH, -1.0):
            monkeypatch.setattr(noun_lists, "_FRESH", fresh)
            await swarm.most(2)
            asked.append(swarm.asked)
        return asked

    assert run(main()) == [SHARDS, SHARDS, 2 * SHARDS]


def test_a_swarm_that_has_just_started_is_waited_for() -> None:
    asked = 0

    def starts(question: AskNouns) -> Message:
        nonlocal asked
        asked += 1
        if asked <= 3 * SHARDS:
            raise Unreachable("it is starting")
        return honest(question)

    assert run(Swarm(starts).most(1)) == [("bee", 5)]


def test_peers_that_hang_are_not_waited_for_one_after_the_other() -> None:
    async def main() -> None:
        begun = asyncio.get_running_loop().time()
        with pytest.raises(Unreachable, match="ask again"):
            await Swarm(*[silent] * 99, honest).most(3)
        assert asyncio.get_running_loop().time() - begun <= 30

    run(main())


def test_a_shard_that_nobody_lists_is_an_error_with_advice() -> None:
    with pytest.raises(Unreachable, match=rf"nouns of {SHARDS} shards.*giaann status"):
        run(Swarm(silent).most(3))
