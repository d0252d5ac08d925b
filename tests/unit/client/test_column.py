"""Looking at a column that is cut into blocks, each of which another peer tells of."""

import asyncio
import random
import struct
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from giaann_p2p.client import column as module
from giaann_p2p.client.column import column
from giaann_p2p.client.session import Session
from giaann_p2p.model.ids import word_id
from giaann_p2p.model.rows import Answer, Name, Neuron, empty_row
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.reading.row_vote import NOTHING, Verify
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.messages import encode
from giaann_p2p.swarm.wire.row_messages import Column as Told

BEE = word_id("bee")


class Blocks:
    """A visit to a swarm that has learned one column."""

    def __init__(self, layout: Layout, occurrences: dict[str, int]) -> None:
        self.manifest: Any = type("Manifest", (), {"spec": ModelSpec()})
        self.rules = Rules(layout.shards, blocks=layout.blocks)
        self.around: Any = SimpleNamespace(rules=self.rules)
        self.lookout: Any = None
        self.verify = NOTHING
        self._names = {word_id(word): word for word in occurrences}
        self.counts = {word_id(word): count for word, count in occurrences.items()}

    async def told(self, _: Session, shard: int, concept: int) -> tuple[int, ...]:
        """Return what a peer tells that has this shard alone."""
        layout = self.rules.layout
        here = [one for one in self.counts if layout.shard_of(concept, one) == shard]
        return tuple(sorted(here, key=lambda one: -self.counts[one]))

    async def rows(self, neurons: Sequence[Neuron]) -> Answer:
        """Return rows that lead nowhere."""
        return [self._row(neuron) for neuron in neurons]

    def _row(self, neuron: Neuron) -> Any:  # noqa: ANN401
        row = empty_row(neuron, Name("bee", self._names[neuron.feature]))
        return replace(row, count=self.counts[neuron.feature])


@pytest.mark.parametrize("blocks", [1, 4])
@pytest.mark.parametrize("seed", range(4))
def test_the_most_frequent_words_are_shown_wherever_they_are(
    monkeypatch: pytest.MonkeyPatch, blocks: int, seed: int
) -> None:
    chance = random.Random(seed)
    occurrences = {f"word{n}": count for n, count in enumerate(chance.sample(range(1, 999), 60))}
    swarm = Blocks(Layout(shards=64, blocks=blocks), occurrences)
    monkeypatch.setattr(module, "_told", swarm.told)
    found = asyncio.run(column(cast("Session", swarm), "bee", words=10))
    assert [word.occurrences for word in found.words] == sorted(occurrences.values())[:-11:-1]
    assert (found.size, found.at_least) == (len(occurrences), False)


def test_a_column_is_listed_anew_if_its_shards_double_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A peer that is asked then may have dropped the half that has the column's words."""
    occurrences = {f"word{n}": n + 1 for n in range(60)}
    swarm, asked = Blocks(Layout(shards=4, blocks=4), occurrences), list[int]()

    async def told(_: Session, shard: int, concept: int) -> tuple[int, ...]:
        asked.append(shard)
        if len(asked) == 2:
            swarm.rules = swarm.around.rules = Rules(64, founding_shards=4, blocks=4)
        return await swarm.told(_, shard, concept)

    monkeypatch.setattr(module, "_told", told)
    found = asyncio.run(column(cast("Session", swarm), "bee", words=10))
    assert found.size == len(occurrences)
    assert max(asked) >= 4


@pytest.mark.parametrize("voted", [False, True])
@pytest.mark.parametrize(("most", "at_least"), [(8, True), (9, False)])
def test_a_column_of_which_a_peer_lists_no_more_may_have_more_words(
    monkeypatch: pytest.MonkeyPatch, voted: bool, most: int, at_least: bool
) -> None:
    swarm = Blocks(Layout(shards=64), {f"word{n}": n + 1 for n in range(10)})
    features = [*swarm.counts]
    lists = [features[:8], features[1:9], features[2:10]]

    async def said(_: Session, peer: Peer, __: int) -> tuple[int, ...]:
        return tuple(lists[peer[0]])

    owners = [Peer(bytes([number]) * 32) for number in range(3)]
    seen = SimpleNamespace(owners=lambda _: owners, replicas=3)
    swarm.around = SimpleNamespace(
        ready=lambda *_: owners, placement=lambda _: seen, rules=swarm.rules
    )
    swarm.lookout = SimpleNamespace(time=lambda: 0.0)
    swarm.verify = Verify(share=float(voted))
    monkeypatch.setattr(module, "_said", said)
    monkeypatch.setattr(module, "MOST_READ", most)
    found = asyncio.run(column(cast("Session", swarm), "bee", words=2))
    assert (found.size, found.at_least) == (8, at_least)


class Starting:
    """A visit to a swarm whose only storage peer serves nothing at the first looks."""

    def __init__(self, looks: int) -> None:
        self.around = self.lookout = self.place = self.transport = self
        self._looks = looks

    def time(self) -> float:
        """Return the time."""
        return 0.0

    def ready(self, shard: int, now: float) -> list[Peer]:
        """Return nobody until there were enough looks."""
        self._looks -= 1
        return [] if self._looks >= 0 else [Peer(b"s" * 32)]

    async def call(self, peer: Peer, data: bytes, **options: float) -> bytes:
        """Return the one feature that there is."""
        return encode(Told(struct.pack("<Q", 7)))


def test_a_swarm_that_starts_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOK_EVERY", 0.001)
    assert asyncio.run(module._told(cast("Session", Starting(3)), 0, BEE)) == (7,)
    monkeypatch.setattr(module, "_PATIENCE", 0.01)
    with pytest.raises(Unreachable, match="no peer has served it for"):
        asyncio.run(module._told(cast("Session", Starting(1 << 30)), 0, BEE))
