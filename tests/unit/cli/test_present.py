"""What is told of a text that a swarm was to learn."""

from giaann_p2p.cli.present import liar_lines, trained_line, unbrought_lines
from giaann_p2p.client.plain import taught_json
from giaann_p2p.client.trained import TrainReport
from giaann_p2p.model.parse import Reason
from giaann_p2p.solo.reports import Trained


def test_who_was_sent_away_is_named_and_why() -> None:
    report = TrainReport("bees.txt", 100, liars={"zorp"}, unbrought={"b": 1, "a": 1200})
    (line,) = liar_lines(report)
    assert line.startswith("bees.txt: the result of peer zorp differs from that of others")
    lines = list(unbrought_lines(report))
    assert [line.partition(" reported ")[0] for line in lines] == [
        "bees.txt: no owner has 1,200 chunks that peer a",
        "bees.txt: no owner has a chunk that peer b",
    ]
    assert all("others learn that again, and it gets no more work" in line for line in lines)
    found = taught_json(report)
    assert (found["liars"], found["unbrought"]) == (["zorp"], {"b": 1, "a": 1200})
    assert found["complete"] is True


def test_of_nobody_nothing_is_told() -> None:
    assert [
        *liar_lines(TrainReport("bees.txt", 100)),
        *unbrought_lines(TrainReport("bees.txt", 100)),
    ] == []


def test_what_was_skipped_and_what_was_cleaned_are_told_apart() -> None:
    report = Trained("bees.txt", 100, sentences=1200, sequences=1100)
    assert trained_line(report) == "bees.txt: learned 1,100 of 1,200 sentences"
    report.skips.add(Reason.CLEANED, 7, 1050)
    assert trained_line(report) == (
        "bees.txt: learned 1,100 of 1,200 sentences, "
        "read as spaces: 1,050 control characters (first on line 7)"
    )
    report.skips.add(Reason.TOO_SHORT, 9, 100)
    assert trained_line(report) == (
        "bees.txt: learned 1,100 of 1,200 sentences, skipped 100 too short (first on line 9), "
        "read as spaces: 1,050 control characters (first on line 7)"
    )
