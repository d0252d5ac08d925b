"""The status that a daemon publishes."""

import pytest

from giaann_p2p.local.status_file import READY, Status
from peers.daemon import reachable


@pytest.mark.parametrize(
    ("state", "is_up", "shown"),
    [
        (READY, True, READY),
        (READY, False, "reconnecting"),
        ("syncing", False, "syncing"),
        ("draining", False, "draining"),
    ],
)
def test_nobody_is_ready_who_cannot_be_reached(state: str, is_up: bool, shown: str) -> None:
    assert reachable(Status(state=state, note="full"), is_up) == Status(state=shown, note="full")
