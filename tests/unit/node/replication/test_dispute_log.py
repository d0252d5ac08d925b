"""What a log says of owners that differ: once, and again when it has changed."""

import logging

import numpy as np
import pytest

from giaann_p2p.node.replication.dispute_log import DisputeLog
from giaann_p2p.swarm.wire.identity import Peer, name_of

A = Peer(b"a" * 32)
WRONG = {A: np.array([3, 17], np.uint16)}


def test_who_is_wrong_is_told_once_and_when_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    one = DisputeLog(logging.getLogger("giaann.test"))
    for _ in range(3):
        one.look(WRONG, [])
    one.look({A: np.array([3], np.uint16)}, [])
    for _ in range(2):
        one.look({}, [])
    told = [record.getMessage() for record in caplog.records]
    assert [name_of(A) in line for line in told] == [True] * 3
    assert "of shards 3, 17:" in told[0]
    assert "of shard 3:" in told[1]
    assert told[2].endswith("no longer differs from the other owners")


def test_what_is_disputed_here_is_told_with_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    one = DisputeLog(logging.getLogger("giaann.test"))
    for disputed in ([], [*range(12)], [*range(12)], [5], []):
        one.look({}, disputed)
    first, second = (record.getMessage() for record in caplog.records)
    assert "of shards 0, 1, 2, 3, 4, 5, 6, 7 and 4 more:" in first
    assert "--renew 0,1,2,3,4,5,6,7,8,9,10,11," in first
    assert "--renew 5," in second
    assert repr(one) == "<DisputeLog: 0 wrong, 0 shards disputed>"
