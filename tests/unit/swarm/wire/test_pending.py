"""Each number is used once, and something follows from it once."""

from giaann_p2p.swarm.wire.pending import PendingCalls


def test_what_follows_is_called_once() -> None:
    pending_calls, seen = PendingCalls[str, int](), list[tuple[str, str, float]]()

    def then(name: str, outcome: str, now: float) -> list[int]:
        seen.append((name, outcome, now))
        return [len(seen)]

    one = pending_calls.number(lambda outcome, now: then("one", outcome, now))
    two = pending_calls.number(lambda outcome, now: then("two", outcome, now))
    assert one != two
    assert len(pending_calls) == 2
    assert pending_calls.done(two, "b", 7.0) == [1]
    assert pending_calls.done(two, "again", 8.0) == []
    assert pending_calls.done(99, "never asked", 8.0) == []
    assert len(pending_calls) == 1
    assert pending_calls.done(one, "a", 9.0) == [2]
    assert seen == [("two", "b", 7.0), ("one", "a", 9.0)]
    assert len(pending_calls) == 0
    assert pending_calls.number(lambda outcome, now: []) not in (one, two)


def test_what_follows_may_number_something_else() -> None:
    pending_calls = PendingCalls[None, int]()
    first = pending_calls.number(
        lambda outcome, now: [pending_calls.number(lambda outcome, now: [])]
    )
    (second,) = pending_calls.done(first, None, 0.0)
    assert second != first
    assert len(pending_calls) == 1
