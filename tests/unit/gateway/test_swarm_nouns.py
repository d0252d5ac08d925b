"""A swarm's nouns are listed by its storage peers, some of which lie, refuse, or never end."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest

from giaann_p2p.client.session import Session
from giaann_p2p.gateway import swarm_nouns
from giaann_p2p.gateway.swarm_nouns import SwarmNouns
from giaann_p2p.gateway.views import Found
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import AskNouns, Nouns, Refusal, decode, encode

SHARDS = 2


def session(*peers: Callable[[AskNouns], Message]) -> Session:
    """Return a session with a swarm in which each of these peers serves every shard."""
    known = {Peer(bytes([number]) * 32): peer for number, peer in enumerate(peers)}

    async def call(peer: Peer, body: bytes, **_: float) -> bytes:
        question = decode(body)
        assert isinstance(question, AskNouns)
        return encode(known[peer](question))

    found = SimpleNamespace(
        manifest=SimpleNamespace(layout=Layout(shards=SHARDS)),
        around=SimpleNamespace(ready=lambda _shard, _now: list(known)),
        place=SimpleNamespace(transport=SimpleNamespace(call=call)),
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
    monkeypatch.setattr(swarm_nouns, "MOST_NOUNS", 1)


@pytest.mark.parametrize("bad", [silent, refuses, disordered])
def test_all_shards_are_listed_by_whoever_answers(bad: Callable[[AskNouns], Message]) -> None:
    found = searched(bad, honest)
    assert [one.noun for one in found.found] == ["beer0", "beer1", "bee0", "bee1"]
    assert (found.of, found.note) == (4, "")


def test_a_search_says_what_it_lacks() -> None:
    found = searched(refuses, silent)
    assert found.found == []
    assert found.note.startswith(f"{SHARDS} of {SHARDS} shards are not listed")


def test_a_list_without_an_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swarm_nouns, "_MOST", 20)
    asked = list[str]()

    def endless(question: AskNouns) -> Message:
        asked.append(question.after)
        return Nouns([f"bee{len(asked):09}"], [1])

    assert searched(endless).of == 20
    assert len(asked) == 20
