"""Histories in which rows do not fit into one answer, so that slices of them are read."""

import pytest

from giaann_p2p.sim.run import run
from giaann_p2p.swarm.replication.answers import Answers
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.row_messages import ReadSlice
from tests.sim import HANGS

MOST_BYTES = 400
"""The most bytes of the rows of one answer here."""


@pytest.mark.slow
@pytest.mark.timeout(HANGS)
@pytest.mark.parametrize("seed", range(3))
def test_rows_are_read_slice_by_slice_amid_all_faults(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("giaann_p2p.swarm.replication.answers._MOST_ROWS", MOST_BYTES)
    slices, to = list[ReadSlice](), Answers.to

    def noted(self: Answers, question: Message, doublings: int | None = None) -> Message:
        if isinstance(question, ReadSlice):
            slices.append(question)
        return to(self, question, doublings)

    monkeypatch.setattr(Answers, "to", noted)
    outcome = run(seed)
    assert not outcome.problems
    assert len(slices) > 10
