"""What a storage peer that is to leave says of why it is still here."""

import msgspec
import pytest

from giaann_p2p.swarm.members.departure import Decision, decided, hindrance
from giaann_p2p.swarm.wire.record import Announcement, PeerState
from tests.unit.node.helpers import identity
from tests.unit.node.members.test_lookout import announcement

ME = identity(1).peer


def saying(number: int, state: PeerState = "active") -> Announcement:
    return msgspec.structs.replace(announcement(identity(number)), state=state)


MINE = saying(1, "draining")
COMPUTING = msgspec.structs.replace(saying(9), role="compute")


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ([], "there is no other storage peer to take them"),
        ([COMPUTING], "there is no other storage peer to take them"),
        (
            [saying(2, "draining")],
            "the only other storage peer is leaving as well, so none stays to take them",
        ),
        (
            [saying(2, "draining"), saying(3, "draining")],
            "all 2 others are leaving as well, so none stays to take them",
        ),
        (
            [saying(2), saying(3, "draining"), COMPUTING],
            "only 1 other storage peer stays, but an update needs 2 owners in this swarm",
        ),
        ([saying(2), saying(3)], "their new owners are still fetching them"),
    ],
)
def test_what_the_shards_wait_for(others: list[Announcement], said: str) -> None:
    assert hindrance(ME, [MINE, *others], quorum=2) == said
    assert hindrance(ME, others, quorum=2) == said


@pytest.mark.parametrize(
    ("others", "decision"),
    [
        ([], Decision.KEEP),
        ([COMPUTING], Decision.KEEP),
        ([saying(2, "draining"), saying(3, "draining")], Decision.KEEP),
        ([saying(2)], Decision.WAIT),
        ([saying(2, "draining"), saying(3)], Decision.WAIT),
    ],
)
def test_waiting_helps_only_where_somebody_stays(
    others: list[Announcement], decision: Decision
) -> None:
    live = [MINE, *others]
    assert decided(ME, live, taught=True, durable=True) is decision
    assert decided(ME, live, taught=False, durable=True) is Decision.LEAVE
    assert decided(ME, live, taught=False, durable=False) is Decision.LEAVE
    assert decided(ME, live, taught=True, durable=False) is Decision.WAIT
