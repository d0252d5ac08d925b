"""Whether a gateway can answer prompts, by the peers that are in its swarm."""

from types import SimpleNamespace
from typing import cast

from giaann_p2p.gateway.held_session import HeldSession
from giaann_p2p.gateway.swarm_backend import SwarmBackend
from giaann_p2p.swarm.members.commands import GENERAL
from tests.unit.swarm.members.test_peers_view import NOW, ONE, TWO, Seeing, record


def test_a_gateway_is_ready_when_both_kinds_of_peers_are_there() -> None:
    around = Seeing()
    session = SimpleNamespace(manifest=SimpleNamespace(), around=around, now=NOW)
    held = cast(HeldSession, SimpleNamespace(session=session))
    backend = SwarmBackend(held, lambda _: GENERAL, training=False)
    assert backend.lacking == "no storage peer is in this swarm now"
    around.tell(record(TWO, role="compute", capacity=0, slots=1))
    assert backend.lacking == "no storage peer is in this swarm now"
    around.tell(record(ONE))
    assert backend.lacking == ""
    around.tell(record(TWO, 2, role="compute", capacity=0, slots=1, state="draining"))
    assert backend.lacking == "no compute peer is in this swarm now"
