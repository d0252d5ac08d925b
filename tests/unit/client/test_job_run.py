"""What is counted of what workers say."""

import pytest

from giaann_p2p.client.job_run import Tally
from giaann_p2p.client.trained import GivenUp, TrainReport
from giaann_p2p.model.text import Sentence
from giaann_p2p.swarm.wire.training_messages import Learned, Skip

CHUNK = [Sentence(f"Bee {number} makes honey.", 10 + number) for number in range(5)]


def test_a_chunk_is_counted_once() -> None:
    tally = Tally(
        TrainReport("bees.txt", 100, given_up={7: GivenUp(1, ("no",)), 8: GivenUp(9, ())})
    )
    skips = [Skip("too much punctuation", 2, 1), Skip("no noun", 1, 4)]
    for _ in range(2):
        tally.count(Learned(7, 2, skips, 99), CHUNK)
    report = tally.report
    assert (report.chunks, report.sentences, report.sequences, report.pushed) == (1, 5, 2, 99)
    assert report.skips.counts == {"too much punctuation": 2, "no noun": 1}
    assert report.skips.first_lines == {"too much punctuation": 11, "no noun": 14}
    assert set(report.given_up) == {8}
    assert repr(tally) == "<Tally of 1 chunks>"


@pytest.mark.parametrize(
    "lie", [Skip("no reason", 1, 0), Skip("too short", 1, 5), Skip("too short", 6, 0)]
)
def test_what_cannot_be_is_not_believed(lie: Skip) -> None:
    tally = Tally(TrainReport("bees.txt", 100))
    tally.count(Learned(0, 64, [lie], 5), CHUNK)
    assert tally.report.sequences == 5
    assert tally.report.skips.total() == 0
