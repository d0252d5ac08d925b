"""What is told of a text that a swarm was to learn."""

from giaann_p2p.cli.present import liar_lines, taught_json, unbrought_lines
from giaann_p2p.client.trained import TrainReport


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
