"""Silence is tried again, and nothing else."""

import asyncio

import pytest

from giaann_p2p.errors import PeerError
from giaann_p2p.net.clock import run
from giaann_p2p.net.errors import Broken, NoConnection, Reason, Refused, TimedOut, Unreachable
from giaann_p2p.net.patience import called
from giaann_p2p.swarm.wire.identity import Peer

PEER = Peer(b"p" * 32)
SILENCE = NoConnection("no answer"), TimedOut("no answer in time")
ANSWERS = Refused(Reason.BUSY, "busy"), Unreachable("refused"), Broken("ended")


class Line:
    """A transport on which calls end as a test says, one after the other."""

    def __init__(self, *ends: PeerError | bytes) -> None:
        self.ends = list(ends)
        self.times: list[float] = []

    async def call(self, peer: Peer, payload: bytes, *, timeout: float) -> bytes:  # noqa: ASYNC109
        assert (peer, payload, timeout) == (PEER, b"?", 6.0)
        self.times.append(asyncio.get_running_loop().time())
        end = self.ends.pop(0)
        if isinstance(end, PeerError):
            raise end
        return end


def call(line: Line, tries: int = 4) -> bytes:
    return run(called(line, PEER, b"?", 6.0, tries))  # type: ignore[arg-type]


@pytest.mark.parametrize("silence", SILENCE)
def test_silence_is_tried_again_as_often_as_said(silence: PeerError) -> None:
    assert call(Line(silence, silence, silence, b"!")) == b"!"
    line = Line(*[silence] * 4, b"!")
    with pytest.raises(type(silence)):
        call(line)
    assert line.ends == [b"!"]


def test_a_dial_that_is_refused_at_once_is_tried_again_only_later() -> None:
    line = Line(SILENCE[0], SILENCE[0], b"!")
    assert call(line) == b"!"
    assert line.times == [0.0, 6.0, 12.0]


@pytest.mark.parametrize("answer", ANSWERS)
def test_any_other_error_is_an_answer(answer: PeerError) -> None:
    line = Line(SILENCE[0], answer, b"!")
    with pytest.raises(type(answer)):
        call(line)
    assert line.ends == [b"!"]
