"""Swarms of dummies, and that nothing of them is left."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from giaann_p2p.local.roles import ROLES
from giaann_p2p.local.swarm import LocalSwarm
from tests.unit.local.helpers import processes_of

NewSwarm = Callable[..., LocalSwarm]


def entries(default: str = "ready", **others: str) -> dict[str, str]:
    """Return what each role calls, of the dummies."""
    return {role: f"tests.unit.local.dummies:{others.get(role, default)}" for role in ROLES}


@pytest.fixture
def new_swarm(tmp_path: Path) -> Iterator[NewSwarm]:
    """Make swarms in one folder; what a test leaves behind fails it."""
    folder = tmp_path / "swarm"
    made: list[LocalSwarm] = []

    def make(**changes: object) -> LocalSwarm:
        made.append(
            LocalSwarm(folder, **{"entries": entries(), "storages": 2, "grace": 5.0, **changes})
        )
        return made[-1]

    yield make
    for swarm in made:
        with suppress(Exception):
            swarm.close(now=True)
    assert processes_of(folder) == []
    assert not os.path.lexists(folder / "run")
