"""Each number is used once, and something follows from it once."""

from giaann_p2p.swarm.desk import Desk


def test_what_follows_is_called_once() -> None:
    desk, seen = Desk[str, int](), list[tuple[str, str, float]]()

    def then(name: str, outcome: str, now: float) -> list[int]:
        seen.append((name, outcome, now))
        return [len(seen)]

    one = desk.number(lambda outcome, now: then("one", outcome, now))
    two = desk.number(lambda outcome, now: then("two", outcome, now))
    assert one != two
    assert len(desk) == 2
    assert desk.done(two, "b", 7.0) == [1]
    assert desk.done(two, "again", 8.0) == []
    assert desk.done(99, "never asked", 8.0) == []
    assert len(desk) == 1
    assert desk.done(one, "a", 9.0) == [2]
    assert seen == [("two", "b", 7.0), ("one", "a", 9.0)]
    assert len(desk) == 0
    assert desk.number(lambda outcome, now: []) not in (one, two)


def test_what_follows_may_number_something_else() -> None:
    desk = Desk[None, int]()
    first = desk.number(lambda outcome, now: [desk.number(lambda outcome, now: [])])
    (second,) = desk.done(first, None, 0.0)
    assert second != first
    assert len(desk) == 1
