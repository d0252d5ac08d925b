"""What is told of something outside that cannot be reached."""

import asyncio
import logging
from contextlib import suppress

import pytest

from giaann_p2p.errors import PeerError
from giaann_p2p.net.errors import NobodyYet, Unreachable
from giaann_p2p.node.members.contact import Contact

ALONE, SILENT = NobodyYet("nobody yet"), Unreachable("no answer")
BEGUN = (logging.WARNING, "it cannot be reached, trying again: no answer")
OVER, FIRST = (logging.INFO, "it can be reached again"), (logging.INFO, "nobody yet")


@pytest.mark.parametrize(
    ("tries", "told"),
    [
        ([None, None], []),
        ([SILENT, SILENT, None, SILENT], [BEGUN, OVER, BEGUN]),
        ([ALONE, ALONE, None], [FIRST]),  # a first peer's first minutes: no warning
        ([ALONE, SILENT, SILENT, ALONE, None], [FIRST, BEGUN, OVER]),
    ],
)
def test_trouble_is_told_when_it_begins_and_ends(
    tries: list[PeerError | None], told: list[tuple[int, str]], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    contact = Contact("it", logging.getLogger("test"), within=20.0)

    async def try_once(error: PeerError | None) -> None:
        if error is not None:
            raise error

    async def main() -> None:
        for error in tries:
            with suppress(Unreachable):
                await contact.reached(try_once(error))

    asyncio.run(main())
    assert [(one.levelno, one.getMessage()) for one in caplog.records] == told
