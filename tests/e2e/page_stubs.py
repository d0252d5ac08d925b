"""Backends that show the page what a small swarm does not have: a vast column, shards that move."""

from typing import Any

from giaann_p2p.gateway.backend import Learned, Teaching
from giaann_p2p.gateway.views import (
    PeersNow,
    ShownColumn,
    ShownLead,
    ShownLoad,
    ShownPeer,
    ShownWord,
)
from tests.unit.gateway.serving import Stub

SIZE = 100_000
"""Words of the vast column."""
LONG = "pneumonoultramicroscopicsilicovolcanoconiosis"
WIDE = "WMW" * 20
"""A name of the widest letters."""


class Vast(Stub):
    """A backend whose every column has 100,000 words with long names."""

    async def column(self, noun: str, words: int, leads: int) -> ShownColumn | None:
        """Return a column of long words, which lead to columns with long names."""
        shown = [
            ShownWord(
                feature=None if at == 0 else f"{(LONG, WIDE, 'by')[at % 3]}{at or ''}",
                occurrences=10_000_000 - at,
                connections=SIZE - at,
                leads=[_lead(at, lead) for lead in range(leads)],
            )
            for at in range(words)
        ]
        return ShownColumn(concept=noun, size=SIZE, words=shown)


def _lead(at: int, lead: int) -> ShownLead:
    return ShownLead(
        concept=f"{(WIDE, LONG)[lead % 2]}_{at + lead}",
        feature=(None, LONG, "by")[lead % 3],
        strength=1e6 / (1 + at + lead),
    )


class Moving(Stub):
    """A swarm of four shards with one replica: one moves, one is repaired, one moved just now."""

    async def peers(self) -> PeersNow:
        """Return two storage peers, and what they hold."""
        shards = [
            [("anna", "ready"), ("bert", "syncing")],
            [("bert", "ready")],
            [("bert", "syncing")],
            [("anna", "ready"), ("bert", "ready")],
        ]
        return PeersNow(peers=[_peer("anna", 2, 0), _peer("bert", 2, 2)], shards=shards)


class Resharded(Moving):
    """The same swarm, of which more replicas may be wanted later: its status tells how many."""

    wanted = 1

    async def status(self) -> dict[str, Any]:
        """Return the state, with the number of replicas."""
        return {**await super().status(), "replicas": self.wanted}


class Pupil(Stub):
    """A backend that keeps what it is taught, and reports what it is told to."""

    def __init__(self, profile: str = "words", *, training: bool = False) -> None:
        super().__init__(profile, training=training)
        self.taught: list[tuple[str, str]] = []
        self.report: dict[str, Any] = {"sentences": 1, "sequences": 1}

    async def train(self, name: str, text: str) -> Teaching:
        """Learn a text at once."""
        self.taught.append((name, text))
        yield Learned(report=self.report)


def _peer(name: str, ready: int, syncing: int) -> ShownPeer:
    return ShownPeer(
        name=name,
        role="storage",
        state="active",
        room=1,
        capacity=1,
        used=0,
        ready=ready,
        syncing=syncing,
        owns=ready,
        load=ShownLoad(),
        reads_per_s=0,
        writes_per_s=0,
        version=None,
        since=0,
        silent=False,
    )
