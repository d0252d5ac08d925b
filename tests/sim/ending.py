"""Ends what a test leaves running."""

from collections.abc import Callable, Iterator

import pytest

from giaann_p2p.sim.swarm import Swarm


@pytest.fixture(autouse=True)
def every_swarm_ends(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close all swarms of a test, so that no task of a real node is left pending."""
    swarms = list[Swarm]()
    founded: Callable[..., None] = Swarm.__init__

    def noted(swarm: Swarm, *arguments: object, **named: object) -> None:
        founded(swarm, *arguments, **named)
        swarms.append(swarm)

    monkeypatch.setattr(Swarm, "__init__", noted)
    yield
    for swarm in swarms:
        swarm.close()
