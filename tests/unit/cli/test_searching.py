"""What a founder may type to say what is to be withdrawn."""

from datetime import datetime

import pytest

from giaann_p2p.cli.searching import sought_of
from giaann_p2p.errors import UsageError
from giaann_p2p.swarm.wire.identity import Identity, to_text
from giaann_p2p.swarm.wire.withdrawal_filter import MOST_SOUGHT

PEER = Identity.from_seed(bytes(32)).peer
NOON = datetime(2027, 1, 31, 12, 0).timestamp()
JOB = "01" * 16


def test_jobs_authors_and_a_time_are_read() -> None:
    found = sought_of([to_text(PEER)] * 2, ["02" * 16, JOB], "11:58", NOON)
    assert found.authors == (PEER,)
    assert found.jobs == (b"\1" * 16, b"\2" * 16)
    assert found.since == NOON - 120
    assert not found.fault()


def test_a_time_of_the_day_is_the_latest_that_has_been() -> None:
    assert sought_of([], [], "12:03", NOON).since == NOON + 180 - 24 * 3600


def test_a_date_is_read() -> None:
    assert sought_of([], [], "2027-01-31T11:00", NOON).since == NOON - 3600


def test_nothing_typed_is_nothing_sought() -> None:
    assert not sought_of([], [], "", NOON)


@pytest.mark.parametrize(
    ("jobs", "since", "words"),
    [
        (["0102"], "", "--job must be 32 digits, 0-9 and a-f, not '0102'"),
        (["xy" * 16], "", "--job must be 32 digits"),
        ([], "noon", "--since must be a time, 12:03 or 2027-01-31T12:03, not 'noon'"),
        ([], "2027-13-31", "--since must be a time"),
        ([], "2027-01-29T12:00", "owners remember arrivals for one day"),
        ([], "2027-02-01T12:00", "owners remember arrivals for one day"),
        ([f"{n:032x}" for n in range(MOST_SOUGHT + 1)], "", "at most 2,048 jobs or authors"),
    ],
)
def test_what_cannot_be_is_told(jobs: list[str], since: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        sought_of([], jobs, since, NOON)
