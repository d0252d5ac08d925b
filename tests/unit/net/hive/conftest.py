"""Fixtures for tests of a board."""

from collections.abc import Iterator

import pytest

BOARD = "giaann_p2p.net.hive.board"


@pytest.fixture
def patient() -> Iterator[None]:
    """Let a board wait for what a busy machine does late, and rely on it for longer.

    So no node counts as silent, and no search as old, only because the machine has no time.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_CALL_WITHIN", "_CONNECT_WITHIN"):
            patch.setattr(f"{BOARD}.{name}", 60.0)
        for name in ("_BEGIN_WITHIN", "_JOIN_WITHIN", "_WITHIN"):
            patch.setattr(f"{BOARD}.{name}", 120.0)
        patch.setattr(f"{BOARD}._LEFT_OUT", 600.0)
        patch.setattr("giaann_p2p.net.hive.searches._SEARCH_EVERY", 600.0)
        yield
