"""What is counted."""

from giaann_p2p.node.counters import BOUNDS, Counters, Histogram


def test_a_histogram_counts_up_to_each_bound() -> None:
    took = Histogram()
    for seconds in (0.0, BOUNDS[0], BOUNDS[0] * 1.01, BOUNDS[-1], BOUNDS[-1] + 1):
        took.took(seconds)
    assert took.counts == [2, 1, *[0] * (len(BOUNDS) - 3), 1, 1]
    assert repr(took) == f"<Histogram: 5 times, {took.seconds / 5:.6f} s on average>"
    assert repr(Histogram()) == "<Histogram: 0 times, 0.000000 s on average>"


def test_counters_are_each_ones_own() -> None:
    one, other = Counters(), Counters()
    one.push_seconds.took(1)
    one.pushes += 1
    assert other == Counters(push_seconds=other.push_seconds, read_seconds=other.read_seconds)
    assert sum(other.push_seconds.counts) == other.pushes == 0
