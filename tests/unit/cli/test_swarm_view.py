"""Many peers, in few lines."""

from types import SimpleNamespace
from typing import Any

import pytest

from giaann_p2p.cli import swarm
from giaann_p2p.cli.swarm_view import by_role
from giaann_p2p.local.folder import Known
from giaann_p2p.local.peer import Peer
from giaann_p2p.local.status_file import Status


def answer(storages: int, ready: int) -> Any:  # noqa: ANN401
    peers = [made("bootstrap-1", "bootstrap", True)]
    peers += [made(f"storage-{n}", "storage", n <= ready) for n in range(1, storages + 1)]
    return SimpleNamespace(peers=[peer.view(100.0) for peer in peers])


def made(name: str, role: str, is_ready: bool) -> Peer:
    peer = Peer(Known(name=name, role=role))
    if is_ready:
        peer.begin(99.0)
        peer.pid = 7
        peer.hear(Status(state="ready", pid=7))
    return peer


def test_peers_are_counted_by_role_and_state() -> None:
    assert by_role(answer(9, 3)) == "bootstrap  1 ready\nstorage    6 waiting, 3 ready"


@pytest.mark.parametrize(("storages", "is_table"), [(19, True), (20, False)])
def test_they_are_counted_where_the_table_does_not_fit(
    monkeypatch: pytest.MonkeyPatch, storages: int, is_table: bool
) -> None:
    monkeypatch.setattr(swarm, "errors", lambda: SimpleNamespace(height=24))
    said = swarm._screen(answer(storages, 3))
    assert ("storage-1 " in said) is is_table
    assert ("3 ready" in said) is not is_table
    assert f"4 of {storages + 1} peers are ready; Ctrl-C ends the swarm" in said
