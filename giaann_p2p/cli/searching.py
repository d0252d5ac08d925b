"""Reads the search options of `giaann token withdraw`."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from giaann_p2p.errors import UsageError
from giaann_p2p.store.applied import JOB_BYTES
from giaann_p2p.swarm.replication.arrival_log import DAY
from giaann_p2p.swarm.wire.identity import peer_of
from giaann_p2p.swarm.wire.withdrawal_filter import MOST_SOUGHT, WithdrawalFilter


def sought_of(
    authors: Iterable[str], jobs: Iterable[str], since: str, now: float
) -> WithdrawalFilter:
    """Return the search that --by, --job and --since describe; UsageError for invalid values."""
    found = WithdrawalFilter.of(
        map(_job, jobs), map(peer_of, authors), _time(since, now) if since else 0
    )
    if max(len(found.jobs), len(found.authors)) > MOST_SOUGHT:
        raise UsageError(f"at most {MOST_SOUGHT:,} jobs or authors at a time; run this in parts")
    return found


def _job(text: str) -> bytes:
    try:
        job = bytes.fromhex(text)
    except ValueError:
        job = b""
    if len(job) != JOB_BYTES:
        raise UsageError(f"--job must be {2 * JOB_BYTES} digits, 0-9 and a-f, not {text!r}")
    return job


def _time(text: str, now: float) -> int:
    """Parse a time of the last 24 hours; without a date it is the latest such time in the past."""
    today = datetime.fromtimestamp(now).astimezone()
    try:
        if "-" in text:
            then = datetime.fromisoformat(text).astimezone()
        else:
            at = datetime.strptime(text, "%H:%M").time()
            then = datetime.combine(today.date(), at).astimezone()
            then -= timedelta(days=then > today)
    except ValueError:
        raise UsageError(
            f"--since must be a time, 12:03 or 2027-01-31T12:03, not {text!r}"
        ) from None
    if not now - DAY <= then.timestamp() <= now:
        raise UsageError(
            f"--since {text}: owners remember arrivals for one day only; give a later time"
        )
    return int(then.timestamp())
