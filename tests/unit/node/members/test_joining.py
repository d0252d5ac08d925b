"""Joining: the manifest from whoever has it."""

import asyncio
from collections.abc import Sequence

import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.net.limits import TransportLimits
from giaann_p2p.net.transport import Peer
from giaann_p2p.node.members.joining import _WITHIN, fetched, joined
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.manifest import Manifest, Versions
from giaann_p2p.swarm.wire.member_messages import ManifestIs
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Pushed, Refusal, encode
from tests.unit.node.helpers import MANIFEST, Client, Town, identity, play

OTHER = Manifest.founded(Identity.from_seed(b"o" * 32), "another swarm")


def says(town: Town, number: int, answer: Message) -> Peer:
    """Add somebody who answers everything with this."""
    client = Client(town, number)

    async def handler(peer: Peer, body: bytes) -> bytes:
        return encode(answer)

    client.transport.serve(handler)
    return client.me


def test_a_storage_peer_tells_what_its_swarm_agreed_on() -> None:
    async def story(town: Town) -> None:
        house, client = town.add(), Client(town)
        found = await joined(client.transport, [house.me], MANIFEST.swarm_id, Versions())
        assert found == MANIFEST

    play(story)


def test_liars_and_the_dead_do_not_keep_it_from_being_found() -> None:
    async def story(town: Town) -> None:
        client, house = Client(town), town.add()
        peers = [
            says(town, 100, ManifestIs(OTHER.to_bytes())),
            says(town, 101, ManifestIs(b"rubbish")),
            says(town, 102, Refusal("I will not tell")),
            says(town, 103, Pushed(b"")),
            identity(104).peer,
            house.me,
        ]
        found = await fetched(client.transport, peers, MANIFEST.swarm_id)
        assert found == MANIFEST
        with pytest.raises(Unreachable, match="no peer sent the manifest of the swarm") as caught:
            await fetched(client.transport, peers[:-1], MANIFEST.swarm_id)
        for words in ("another swarm's", "I will not tell", "not a manifest", "nobody listens"):
            assert words in str(caught.value)
        assert "get a newer link" in str(caught.value)

    play(story)


def test_who_does_not_answer_is_not_waited_for() -> None:
    async def story(town: Town) -> None:
        client, house, silent = Client(town), town.add(), town.add()
        town.freeze(silent)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await fetched(client.transport, [silent.me, house.me], MANIFEST.swarm_id)
        assert loop.time() - begun < 1
        with pytest.raises(Unreachable):
            await fetched(client.transport, [silent.me], MANIFEST.swarm_id, within=2)
        assert loop.time() - begun < 14
        town.freeze(silent, frozen=False)

    play(story)


def test_a_peer_that_was_silent_once_is_asked_again() -> None:
    async def story(town: Town) -> None:
        client, house = Client(town), town.add()
        town.freeze(house)
        asyncio.get_running_loop().call_later(3, town.freeze, house, False)
        assert await fetched(client.transport, [house.me], MANIFEST.swarm_id, within=2) == MANIFEST

    play(story)


def test_a_try_lasts_longer_than_a_dial_so_that_each_try_has_a_dial_of_its_own() -> None:
    assert TransportLimits().dial_within < _WITHIN


@pytest.mark.parametrize("peers", [(), []])
def test_without_a_peer_there_is_nobody_to_ask(peers: Sequence[Peer]) -> None:
    async def story(town: Town) -> None:
        with pytest.raises(UsageError, match="get a join link"):
            await fetched(Client(town).transport, peers, MANIFEST.swarm_id)

    play(story)


def test_who_does_not_fit_the_swarm_is_told_why() -> None:
    async def story(town: Town) -> None:
        house, client = town.add(), Client(town)
        ask = client.transport, [house.me], MANIFEST.swarm_id
        with pytest.raises(UsageError, match="does not fit the swarm 'town': protocol: the swarm"):
            await joined(*ask, Versions(protocol=99))
        with pytest.raises(UsageError, match=r"pipeline: .* pip install"):
            await joined(*ask, Versions(), computes=True)

    play(story)
